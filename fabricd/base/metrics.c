/*
 * metrics.c - the metrics as text, over HTTP, and in a file.
 *
 * libevent's HTTP server answers GET /metrics and nothing else. A connection serves one request and is closed
 * after LIFE_S seconds at the latest; beyond MAX_CONNECTIONS, further connections wait in the kernel. The
 * file is replaced as a whole.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "fabricd/base/address.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"
#include "fabricd/base/metrics.h"
#include "fabricd/base/timer.h"
#include "pmixfab.h"

/* ---- counts ---- */

struct counts {
    atomic_uint_fast64_t of[COUNT_KINDS];
    atomic_bool unseen;
    pthread_mutex_t lock; /* of the listener only */
    void (*listener)(void *cbdata);
    void *listener_data;
};

struct counts *counts_new(void)
{
    struct counts *counts = calloc(1, sizeof(*counts));
    if (counts != NULL)
        pthread_mutex_init(&counts->lock, NULL);
    return counts;
}

void counts_free(struct counts *counts)
{
    if (counts == NULL)
        return;
    pthread_mutex_destroy(&counts->lock);
    free(counts);
}

static void counts_tell(struct counts *counts)
{
    if (atomic_exchange(&counts->unseen, true))
        return;
    pthread_mutex_lock(&counts->lock);
    if (counts->listener != NULL)
        counts->listener(counts->listener_data);
    pthread_mutex_unlock(&counts->lock);
}

/* Call `changed` at the first count after each call of count_seen(), on the thread that counts. NULL: stop.
 * counts NULL: do nothing. */
static void count_listen(struct counts *counts, void (*changed)(void *cbdata), void *cbdata)
{
    if (counts == NULL)
        return;
    pthread_mutex_lock(&counts->lock);
    counts->listener = changed;
    counts->listener_data = cbdata;
    pthread_mutex_unlock(&counts->lock);
}

static void count_seen(struct counts *counts)
{
    if (counts != NULL)
        atomic_store(&counts->unseen, false);
}

void count_add(struct counts *counts, enum count what, uint64_t n)
{
    if (counts == NULL)
        return;
    atomic_fetch_add(&counts->of[what], n);
    counts_tell(counts);
}

void count(struct counts *counts, enum count what)
{
    count_add(counts, what, 1);
}

uint64_t counted(const struct counts *counts, enum count what)
{
    return counts == NULL ? 0 : atomic_load(&counts->of[what]);
}

/* ---- the format, and the metrics of both roles ---- */

char *metrics_text(metrics_fn tell, const void *owner)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    tell(out, owner);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* In the OpenMetrics format: there the name of a counter's family has no _total, and a line ends the text. */
static char *metrics_open_text(metrics_fn tell, const void *owner)
{
    char *text = metrics_text(tell, owner), *open = NULL, *rest = NULL;
    size_t size;
    FILE *out = text == NULL ? NULL : open_memstream(&open, &size);
    for (char *line = out == NULL ? NULL : strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const size_t name = line[0] == '#' ? 7 + strcspn(line + 7, " ") : 0; /* the end of the name */
        const bool total = name > 13 && strncmp(line + name - 6, "_total", 6) == 0;
        fprintf(out, "%.*s%s\n", (int)(total ? name - 6 : name), line, line + name);
    }
    free(text);
    if (out != NULL)
        fputs("# EOF\n", out);
    if (out != NULL && fclose(out) == 0)
        return open;
    free(open);
    return NULL;
}

void metrics_family(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Write a label's value, with its three special characters escaped. */
static void metrics_put_label(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\\' || *text == '"')
            fputc('\\', out);
        if (*text == '\n')
            fputs("\\n", out);
        else
            fputc(*text, out);
    }
}

/* A sample with n labels. */
static void metrics_put_sample(FILE *out, const char *name, const char *const *labels,
                               const char *const *values, unsigned n, double number)
{
    fputs(name, out);
    for (unsigned i = 0; i < n; i++) {
        fprintf(out, "%s%s=\"", i == 0 ? "{" : ",", labels[i]);
        metrics_put_label(out, values[i]);
        fputs(i + 1 < n ? "\"" : "\"}", out);
    }
    if (number == floor(number) && fabs(number) < 1e15)
        fprintf(out, " %.0f\n", number);
    else
        fprintf(out, " %.16g\n", number); /* of a time, microseconds */
}

void metrics_sample(FILE *out, const char *name, const char *label, const char *value, double number)
{
    metrics_put_sample(out, name, &label, &value, label != NULL, number);
}

void metrics_sample_of(FILE *out, const char *name, const char *const labels[2], const char *const values[2],
                       double number)
{
    metrics_put_sample(out, name, labels, values, 2, number);
}

void metrics_one(FILE *out, const char *name, const char *type, const char *help, double number)
{
    metrics_family(out, name, type, help);
    metrics_sample(out, name, NULL, NULL, number);
}

void metrics_counted(FILE *out, const struct counts *counts, const char *name, const char *help,
                     enum count what)
{
    metrics_one(out, name, "counter", help, (double)counted(counts, what));
}

void metrics_results(FILE *out, const struct counts *counts, const char *name, const char *help,
                     const struct metrics_result *results, unsigned n)
{
    metrics_family(out, name, "counter", help);
    for (unsigned i = 0; i < n; i++)
        metrics_sample(out, name, "result", results[i].result, (double)counted(counts, results[i].what));
}

static int64_t started; /* microseconds of CLOCK_MONOTONIC */

void metrics_started(void)
{
    started = clock_now(CLOCK_MONOTONIC);
}

void metrics_of_both(FILE *out, const char *role, const struct counts *counts)
{
    metrics_family(out, "fabricd_build_info", "gauge", "Version of fabricd, as a label; always 1.");
    metrics_sample(out, "fabricd_build_info", "version", pmixfab_version(), 1);
    metrics_family(out, "fabricd_role_info", "gauge",
                   "Role of fabricd, scheduler or node, as a label; always 1.");
    metrics_sample(out, "fabricd_role_info", "role", role, 1);
    metrics_one(out, "fabricd_uptime_seconds", "gauge", "Time since the start of fabricd.",
                (double)(clock_now(CLOCK_MONOTONIC) - started) / 1e6);
    metrics_counted(out, counts, "fabricd_control_connections_total", "Connections to the control socket.",
                    COUNT_CONNECTIONS);
}

#define MAX_CONNECTIONS 16
#define LIFE_S          5 /* seconds; longest life of a connection */
#define MAX_HEADERS     8192
#define TEXT_US         1000000 /* microseconds; age up to which an answer is sent again: bounds the load */

/* A connection. It ends when libevent reports its end, which it does only after a request, and after LIFE_S
 * at the latest. */
struct guest {
    struct metrics_http *http;
    struct bufferevent *bev; /* with a reference of its own, so that it outlives the connection */
    struct timer *timer;
    LIST_ENTRY(guest) entry;
};

struct metrics_http {
    struct evhttp *server;
    struct evconnlistener *listener;
    metrics_fn tell;
    const void *owner;
    char *text[2];   /* the last answers: plain, and in OpenMetrics' format */
    int64_t made[2]; /* when they were made, by CLOCK_MONOTONIC */
    unsigned n;
    LIST_HEAD(, guest) guests;
};

/* ---- connections ---------------------------------------------------------------------------------- */

static void guest_leave(struct guest *guest)
{
    struct metrics_http *http = guest->http;
    LIST_REMOVE(guest, entry);
    timer_free(guest->timer);
    bufferevent_decref(guest->bev);
    free(guest);
    http->n--;
    if (http->listener != NULL)
        evconnlistener_enable(http->listener);
}

static void guest_has_ended(struct evhttp_connection *connection, void *arg)
{
    struct metrics_http *http = arg;
    struct guest *guest;
    LIST_FOREACH(guest, &http->guests, entry)
    if (guest->bev == evhttp_connection_get_bufferevent(connection))
        break;
    if (guest != NULL)
        guest_leave(guest);
}

/* Close the connection if it still exists; its server then sees the end. */
static void guest_is_late(void *arg)
{
    struct guest *guest = arg;
    bufferevent_data_cb reads, writes;
    bufferevent_event_cb tells;
    void *cbdata;
    bufferevent_getcb(guest->bev, &reads, &writes, &tells, &cbdata); /* all NULL: libevent has freed it */
    if (reads != NULL || writes != NULL || tells != NULL)
        shutdown(bufferevent_getfd(guest->bev), SHUT_RDWR);
    guest_leave(guest);
}

/* Bound the number of connections, which libevent 2.1 does not do. */
static struct bufferevent *guest_comes(struct event_base *base, void *arg)
{
    struct metrics_http *http = arg;
    struct guest *guest = calloc(1, sizeof(*guest));
    struct bufferevent *bev = bufferevent_socket_new(base, -1, 0); /* the server closes the descriptor */
    if (guest == NULL || bev == NULL || (guest->timer = timer_new(base, guest_is_late, guest)) == NULL) {
        free(guest);
        return bev; /* NULL: libevent makes one itself */
    }
    guest->http = http;
    guest->bev = bev;
    bufferevent_incref(bev);
    LIST_INSERT_HEAD(&http->guests, guest, entry);
    timer_after(guest->timer, LIFE_S * 1000);
    if (++http->n == MAX_CONNECTIONS)
        evconnlistener_disable(http->listener);
    return bev;
}

/* ---- answers -------------------------------------------------------------------------------------- */

static const char *http_text(struct metrics_http *http, bool open)
{
    const int64_t now = clock_now(CLOCK_MONOTONIC);
    if (http->text[open] == NULL || now - http->made[open] >= TEXT_US) {
        free(http->text[open]);
        http->text[open] =
            open ? metrics_open_text(http->tell, http->owner) : metrics_text(http->tell, http->owner);
        http->made[open] = now;
    }
    return http->text[open];
}

static void http_refuse(struct evhttp_request *request, void *arg)
{
    evhttp_connection_set_closecb(evhttp_request_get_connection(request), guest_has_ended, arg);
    evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close");
    evhttp_send_error(request, HTTP_NOTFOUND, NULL);
}

static void metrics_http_answer(struct evhttp_request *request, void *arg)
{
    struct metrics_http *http = arg;
    const char *accept = evhttp_find_header(evhttp_request_get_input_headers(request), "Accept");
    const bool open = accept != NULL && strstr(accept, "application/openmetrics-text") != NULL;
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    const char *text = http_text(http, open);
    evhttp_connection_set_closecb(evhttp_request_get_connection(request), guest_has_ended, http);
    evhttp_add_header(headers, "Connection", "close");
    if (text == NULL || evbuffer_add(evhttp_request_get_output_buffer(request), text, strlen(text)) != 0) {
        evhttp_send_error(request, HTTP_INTERNAL, NULL);
        return;
    }
    evhttp_add_header(headers, "Content-Type",
                      open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                           : "text/plain; version=0.0.4; charset=utf-8");
    evhttp_send_reply(request, HTTP_OK, "OK", NULL);
}

/* ---- the server ----------------------------------------------------------------------------------- */

static void metrics_http_free(struct metrics_http *http)
{
    if (http == NULL)
        return;
    http->listener = NULL;
    evhttp_free(http->server);
    while (!LIST_EMPTY(&http->guests))
        guest_leave(LIST_FIRST(&http->guests)); /* NOLINT(clang-analyzer-unix.Malloc): it leaves the list */
    free(http->text[0]);
    free(http->text[1]);
    free(http);
}

/* Listen at this address and port. On error *out is NULL: PMIXFAB_ERR_NOMEM, _SYNTAX; _IO: listening is not
 * possible now. */
static int metrics_http_new(struct event_base *base, const char *listen, metrics_fn tell, const void *owner,
                            struct metrics_http **out, struct fab_err *err)
{
    char host[INET6_ADDRSTRLEN];
    uint16_t port;
    *out = NULL;
    int rc = address_parse(listen, host, &port, err);
    if (rc != PMIXFAB_OK)
        return rc;
    struct metrics_http *http = calloc(1, sizeof(*http));
    if (http == NULL || (http->server = evhttp_new(base)) == NULL) {
        free(http);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    http->tell = tell;
    http->owner = owner;
    LIST_INIT(&http->guests);
    evhttp_set_allowed_methods(http->server, EVHTTP_REQ_GET);
    evhttp_set_max_headers_size(http->server, MAX_HEADERS);
    evhttp_set_max_body_size(http->server, 0);
    evhttp_set_timeout(http->server, LIFE_S);
    evhttp_set_bevcb(http->server, guest_comes, http);
    evhttp_set_gencb(http->server, http_refuse, http);
    errno = 0;
    struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(http->server, host, port);
    if (bound == NULL || evhttp_set_cb(http->server, "/metrics", metrics_http_answer, http) != 0) {
        rc = fab_fail(err, PMIXFAB_ERR_IO,
                      "%.80s: %s: check that no other program uses this port, and that the address belongs "
                      "to this host",
                      listen, strerror(errno));
        metrics_http_free(http);
        return rc;
    }
    http->listener = evhttp_bound_socket_get_listener(bound);
    *out = http;
    return PMIXFAB_OK;
}

/* ---- the file, and the server beside it ---- */

#define LATER_MS 15000

struct metrics_file {
    struct event_base *base;
    const char *path, *listen; /* NULL: none */
    struct metrics_http *http;
    struct fab_err fault, http_fault; /* "": no error */
    struct counts *counts;
    metrics_fn tell;
    const void *owner;
    struct timer *arm, *timer;
};

/* Called on any thread. */
static void on_count(void *arg)
{
    struct metrics_file *file = arg;
    timer_fire(file->arm);
}

static void on_arm(void *arg)
{
    struct metrics_file *file = arg;
    if (!timer_pending(file->timer))
        timer_after(file->timer, LATER_MS);
}

static void metrics_file_on_timeout(void *arg)
{
    metrics_write(arg);
}

/* Write the file under a name that the collector does not read, then rename it. 0, or an errno. */
static int metrics_file_replace(const char *path, const char *text)
{
    char beside[PATH_MAX];
    if (snprintf(beside, sizeof(beside), "%s.new", path) >= (int)sizeof(beside))
        return ENAMETOOLONG;
    return file_replace(path, beside, text, strlen(text));
}

static void metrics_listen(struct metrics_file *file)
{
    struct fab_err err = {""};
    if (file->listen == NULL || file->http != NULL)
        return;
    const int rc = metrics_http_new(file->base, file->listen, file->tell, file->owner, &file->http, &err);
    if (rc != PMIXFAB_OK && file->http_fault.text[0] == '\0')
        log_error("metrics: cannot listen at %s", err.text);
    file->http_fault = err;
}

const char *metrics_fault(const struct metrics_file *file, unsigned which, const char **where)
{
    const struct fab_err *fault = file == NULL ? NULL : which == 0 ? &file->fault : &file->http_fault;
    if (fault == NULL || fault->text[0] == '\0')
        return NULL;
    *where = which == 0 ? file->path : file->listen;
    return fault->text;
}

void metrics_write(struct metrics_file *file)
{
    struct fab_err err = {""};
    if (file != NULL)
        metrics_listen(file);
    if (file == NULL || file->path == NULL)
        return;
    timer_cancel(file->timer);
    count_seen(file->counts); /* counts from here on set the timer again */
    char *text = metrics_text(file->tell, file->owner);
    int rc = text == NULL ? ENOMEM : metrics_file_replace(file->path, text);
    if (rc != 0)
        fab_fail(&err, PMIXFAB_ERR_IO, "cannot be written: %s", strerror(rc));
    if (rc != 0 && file->fault.text[0] == '\0')
        log_error("metrics: %s: %s", file->path, err.text);
    file->fault = err;
    free(text);
}

int metrics_file_new(struct event_base *base, const char *path, const char *listen, struct counts *counts,
                     metrics_fn tell, const void *owner, struct metrics_file **out)
{
    struct metrics_file *file = calloc(1, sizeof(*file));
    *out = file;
    if (file == NULL)
        return PMIXFAB_ERR_NOMEM;
    *file = (struct metrics_file){
        .base = base, .path = path, .listen = listen, .counts = counts, .tell = tell, .owner = owner};
    if (file->path == NULL) {
        metrics_listen(file);
        return PMIXFAB_OK;
    }
    file->arm = timer_new(base, on_arm, file);
    file->timer = timer_new(base, metrics_file_on_timeout, file);
    if (file->arm == NULL || file->timer == NULL)
        return PMIXFAB_ERR_NOMEM;
    count_listen(counts, on_count, file);
    metrics_write(file);
    return PMIXFAB_OK;
}

void metrics_file_free(struct metrics_file *file)
{
    if (file == NULL)
        return;
    metrics_http_free(file->http);
    count_listen(file->counts, NULL, NULL);
    timer_free(file->arm);
    timer_free(file->timer);
    free(file);
}
