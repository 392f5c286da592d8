#include "mca/pnet/inventory_send.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "mca/pnet/inventory_line.h"
#include "mca/pnet/inventory_queue.h"
#include "topo/base/log.h"

#define FIRST_PAUSE_MS 100
#define LAST_PAUSE_MS  5000
#define ANSWER_MS      30000 /* fabricd stores before it answers */
#define LAST_MS        800   /* for what still waits at the end, if fabricd is there */

struct pnet_sender {
    pthread_t thread;
    pthread_mutex_t lock; /* the queue and the counts */
    struct pnet_queue queue;
    struct pnet_sender_counts counts;
    bool under_way;
    int wake, stop;       /* eventfds */
    _Atomic int64_t last; /* when the thread ends at the latest; 0: it is not to end */
    struct sockaddr_un address;

    /* the thread's own */
    int socket; /* -1: not connected */
    unsigned pause_ms;
    bool told; /* the log knows that there is no fabricd */
    size_t have;
    char answer[PNET_ANSWER_MAX];
};

/* ---- the socket --------------------------------------------------------------------------------- */

static int64_t sender_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Wait for the socket until then, or until the thread's own end. */
static int sender_wait(struct pnet_sender *s, short events, int64_t end)
{
    for (;;) {
        int64_t last = s->last, now = sender_now_ms();
        struct pollfd fds[] = {{.fd = s->socket, .events = events},
                               {.fd = last == 0 ? s->stop : -1, .events = POLLIN}};
        int64_t left = (last != 0 && last < end ? last : end) - now;
        int n = poll(fds, 2, left > 0 ? (int)left : 0);
        if (n < 0 && errno != EINTR)
            return PMIXFAB_ERR_IO;
        if (n > 0 && fds[0].revents != 0)
            return PMIXFAB_OK;
        if (n == 0 && left <= 0)
            return PMIXFAB_ERR_TIMEOUT;
    }
}

static void hang_up(struct pnet_sender *s)
{
    if (s->socket >= 0)
        close(s->socket);
    s->socket = -1;
    s->have = 0;
}

static int sender_connect(struct pnet_sender *s, struct fab_err *err)
{
    if (s->socket >= 0)
        return PMIXFAB_OK;
    s->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->socket < 0)
        return fab_fail(err, PMIXFAB_ERR_UNREACH, "no socket: %s", strerror(errno));
    /* On a UNIX socket it is done at once, or not at all (EAGAIN: too many wait there). */
    if (connect(s->socket, (struct sockaddr *)&s->address, sizeof(s->address)) == 0)
        return PMIXFAB_OK;
    int rc = fab_fail(err, PMIXFAB_ERR_UNREACH, "%s: %s: is fabricd running?", s->address.sun_path,
                      strerror(errno));
    hang_up(s);
    return rc;
}

static int send_line(struct pnet_sender *s, const char *line, size_t len, int64_t end, struct fab_err *err)
{
    while (len > 0) {
        ssize_t n = send(s->socket, line, len, MSG_NOSIGNAL);
        if (n >= 0) {
            line += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            int rc = sender_wait(s, POLLOUT, end);
            if (rc != PMIXFAB_OK)
                return fab_fail(err, rc, "%s: it does not read", s->address.sun_path);
        } else if (errno != EINTR) {
            /* It may have said why before it closed. */
            return errno == EPIPE || errno == ECONNRESET
                       ? PMIXFAB_OK
                       : fab_fail(err, PMIXFAB_ERR_UNREACH, "%s: %s", s->address.sun_path, strerror(errno));
        }
    }
    return PMIXFAB_OK;
}

static int sender_read_line(struct pnet_sender *s, size_t *len, int64_t end, struct fab_err *err)
{
    for (;;) {
        const char *newline = memchr(s->answer, '\n', s->have);
        if (newline != NULL) {
            *len = (size_t)(newline - s->answer);
            return PMIXFAB_OK;
        }
        if (s->have == sizeof(s->answer))
            return fab_fail(err, PMIXFAB_ERR_SYNTAX, "%s: a line of its answer does not end",
                            s->address.sun_path);
        ssize_t n = recv(s->socket, s->answer + s->have, sizeof(s->answer) - s->have, 0);
        if (n > 0) {
            s->have += (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            int rc = sender_wait(s, POLLIN, end);
            if (rc != PMIXFAB_OK)
                return fab_fail(err, rc, "%s: no answer", s->address.sun_path);
        } else if (n == 0 || errno != EINTR) {
            return fab_fail(err, PMIXFAB_ERR_UNREACH, "%s: it hung up before it answered",
                            s->address.sun_path);
        }
    }
}

/* ---- one inventory ------------------------------------------------------------------------------ */

enum outcome { TAKEN, REFUSED, LATER };

/* The last line of the answer. An error: there is none. */
static int read_answer(struct pnet_sender *s, struct pnet_answer *answer, int64_t end, struct fab_err *err)
{
    do {
        size_t len = 0;
        int rc = sender_read_line(s, &len, end, err);
        if (rc != PMIXFAB_OK)
            return rc;
        rc = pnet_inventory_answer(s->answer, len, answer);
        s->have -= len + 1;
        memmove(s->answer, s->answer + len + 1, s->have);
        if (rc != PMIXFAB_OK)
            return fab_fail(err, rc, "%s: its answer is not understood", s->address.sun_path);
    } while (!answer->last);
    return PMIXFAB_OK;
}

static int sender_request(struct pnet_sender *s, const struct pnet_waiting *waiting,
                          struct pnet_answer *answer, struct fab_err *err)
{
    char *line;
    size_t len;
    int64_t end = sender_now_ms() + ANSWER_MS;
    int rc = pnet_inventory_line(waiting->bytes, waiting->size, &line, &len);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "%s", pmixfab_strerror(rc));
    rc = sender_connect(s, err);
    if (rc == PMIXFAB_OK)
        rc = send_line(s, line, len, end, err);
    free(line);
    if (rc == PMIXFAB_OK)
        rc = read_answer(s, answer, end, err);
    if (rc != PMIXFAB_OK) /* whatever still comes is not for the next one */
        hang_up(s);
    return rc;
}

/* What may be better in a moment. Everything else that fabricd says stays so for these bytes. */
static bool sender_is_transient(int code)
{
    return code == PMIXFAB_ERR_BUSY || code == PMIXFAB_ERR_NOMEM || code == PMIXFAB_ERR_IO ||
           code == PMIXFAB_ERR_TIMEOUT || code == PMIXFAB_ERR_UNREACH;
}

static enum outcome sender_upload(struct pnet_sender *s, const struct pnet_waiting *waiting,
                                  struct fab_err *err)
{
    struct pnet_answer answer = {.ok = false};
    if (sender_request(s, waiting, &answer, err) != PMIXFAB_OK)
        return LATER;
    if (answer.ok)
        return TAKEN;
    fab_fail(err, answer.code, "%s",
             answer.message[0] != '\0' ? answer.message : pmixfab_strerror(answer.code));
    return sender_is_transient(answer.code) ? LATER : REFUSED;
}

/* ---- the thread --------------------------------------------------------------------------------- */

static void sender_log(struct pnet_sender *s, const struct pnet_waiting *waiting, enum outcome outcome,
                       const struct fab_err *err)
{
    if (outcome == REFUSED)
        fab_log(PMIXFAB_LOG_WARNING, "inventory of %s refused: %s", waiting->host, err->text);
    else if (outcome == LATER && !s->told)
        fab_log(PMIXFAB_LOG_INFO, "inventory of %s waits: %s", waiting->host, err->text);
    else if (outcome == TAKEN && s->told)
        fab_log(PMIXFAB_LOG_INFO, "inventory of %s taken by fabricd", waiting->host);
    s->told = outcome == LATER;
}

/* The first one that waits. False: none does. */
static bool deliver_one(struct pnet_sender *s)
{
    struct fab_err err = {""};
    pthread_mutex_lock(&s->lock);
    struct pnet_waiting *waiting = pnet_queue_take(&s->queue);
    s->under_way = waiting != NULL;
    pthread_mutex_unlock(&s->lock);
    if (waiting == NULL)
        return false;
    enum outcome outcome = sender_upload(s, waiting, &err);
    sender_log(s, waiting, outcome, &err);
    pthread_mutex_lock(&s->lock);
    s->under_way = false;
    s->counts.delivered += outcome == TAKEN;
    s->counts.refused += outcome == REFUSED;
    s->counts.attempts += outcome == LATER;
    if (outcome == LATER)
        pnet_queue_return(&s->queue, waiting);
    else
        pnet_waiting_free(waiting);
    pthread_mutex_unlock(&s->lock);
    if (outcome != LATER)
        s->pause_ms = 0;
    else if (s->pause_ms == 0)
        s->pause_ms = FIRST_PAUSE_MS;
    else
        s->pause_ms = s->pause_ms * 2 > LAST_PAUSE_MS ? LAST_PAUSE_MS : s->pause_ms * 2;
    return true;
}

static void *sender_thread(void *arg)
{
    struct pnet_sender *s = arg;
    for (;;) {
        struct pollfd fds[] = {{.fd = s->stop, .events = POLLIN}, {.fd = s->wake, .events = POLLIN}};
        eventfd_t woken;
        int64_t last = s->last;
        if (last != 0 && (s->pause_ms > 0 || sender_now_ms() >= last))
            return NULL;
        if (deliver_one(s)) {
            if (s->pause_ms > 0)
                (void)poll(fds, 1, (int)s->pause_ms);
            continue;
        }
        if (last != 0)
            return NULL;
        hang_up(s); /* no connection is kept for days */
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return NULL;
        (void)eventfd_read(s->wake, &woken);
    }
}

/* ---- start, add, stop --------------------------------------------------------------------------- */

static void sender_free(struct pnet_sender *s)
{
    if (s->wake >= 0)
        close(s->wake);
    if (s->stop >= 0)
        close(s->stop);
    hang_up(s);
    pnet_queue_clear(&s->queue);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int pnet_sender_start(const char *rundir, struct pnet_sender **out, struct fab_err *err)
{
    sigset_t all, before;
    *out = NULL;
    struct pnet_sender *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    pthread_mutex_init(&s->lock, NULL);
    s->socket = -1;
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->address.sun_family = AF_UNIX;
    int len = snprintf(s->address.sun_path, sizeof(s->address.sun_path), "%s/control.sock", rundir);
    int rc = PMIXFAB_OK;
    if (len < 0 || (size_t)len >= sizeof(s->address.sun_path)) {
        rc = fab_fail(err, PMIXFAB_ERR_INVAL, "%s/control.sock: too long for a socket's name", rundir);
    } else if (s->wake < 0 || s->stop < 0) {
        rc = fab_fail(err, PMIXFAB_ERR_IO, "no eventfd: %s", strerror(errno));
    } else {
        /* The host's signals are for the host's threads. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        int failed = pthread_create(&s->thread, NULL, sender_thread, s);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (failed != 0)
            rc = fab_fail(err, PMIXFAB_ERR_IO, "no thread: %s", strerror(failed));
    }
    if (rc != PMIXFAB_OK) {
        sender_free(s);
        return rc;
    }
    *out = s;
    return PMIXFAB_OK;
}

int pnet_sender_add(struct pnet_sender *s, const void *bytes, size_t size, struct fab_err *err)
{
    struct fab_delivery delivery;
    int rc = fab_delivery_decode(bytes, size, &delivery, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (delivery.base != 0)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT, "%s: a change, and not what the host has as a whole",
                        delivery.host);
    pthread_mutex_lock(&s->lock);
    rc = pnet_queue_add(&s->queue, delivery.host, bytes, size);
    pthread_mutex_unlock(&s->lock);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "%s: %s", delivery.host,
                        rc == PMIXFAB_ERR_RANGE ? "too much waits for fabricd already" : "out of memory");
    eventfd_write(s->wake, 1);
    return PMIXFAB_OK;
}

void pnet_sender_counts(struct pnet_sender *s, struct pnet_sender_counts *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->counts;
    out->waiting = pnet_queue_count(&s->queue) + s->under_way;
    pthread_mutex_unlock(&s->lock);
}

void pnet_sender_stop(struct pnet_sender *s)
{
    if (s == NULL)
        return;
    s->last = sender_now_ms() + LAST_MS;
    eventfd_write(s->stop, 1);
    pthread_join(s->thread, NULL);
    size_t left = pnet_queue_count(&s->queue);
    if (left > 0)
        fab_log(PMIXFAB_LOG_WARNING, "inventories that fabricd has not taken, dropped: %zu", left);
    sender_free(s);
}
