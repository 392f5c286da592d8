/* ctl_control.c - the client's side of the control socket, and requests to the daemon. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabricctl/core/ctl.h"

/* ---- the client's side of the control socket ---- */

#define SEND_SECONDS 10

struct ctl_control {
    int fd;
    char *where; /* for messages */
    char *buf;
    size_t start, used, cap; /* buf[start..used) is not processed yet */
};

__attribute__((format(printf, 2, 3))) static enum ctl_exit control_fail(char *why, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, CTL_WHY_SIZE, fmt, args);
    va_end(args);
    ctl_clean(why);
    return CTL_FAILED;
}

enum ctl_exit ctl_control_adopt(int fd, const char *where, struct ctl_control **out,
                                char why[static CTL_WHY_SIZE])
{
    struct ctl_control *c = calloc(1, sizeof *c);
    *out = NULL;
    if (c != NULL)
        c->where = strdup(where);
    if (c == NULL || c->where == NULL) {
        free(c);
        close(fd);
        return control_fail(why, "out of memory: %s: try again", where);
    }
    c->fd = fd;
    *out = c;
    return CTL_DONE;
}

enum ctl_exit ctl_control_open(const char *rundir, struct ctl_control **out, char why[static CTL_WHY_SIZE])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int n = snprintf(address.sun_path, sizeof address.sun_path, "%s/control.sock", rundir);
    int fd, saved;
    *out = NULL;
    if (n < 0 || (size_t)n >= sizeof address.sun_path)
        return control_fail(
            why, "too long for a socket's name: %s/control.sock: choose a run directory with a shorter path",
            rundir);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return control_fail(why, "cannot create a socket: %s: %s", address.sun_path, strerror(errno));
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return ctl_control_adopt(fd, address.sun_path, out, why);
    saved = errno;
    close(fd);
    if (saved == ENOENT || saved == ECONNREFUSED || saved == ENOTDIR)
        return control_fail(why, "no fabricd answers: %s: check that it runs (systemctl status fabricd)",
                            address.sun_path);
    if (saved == EAGAIN)
        return control_fail(why, "fabricd is busy: %s: too many callers wait already: try again",
                            address.sun_path);
    return control_fail(why, "cannot connect: %s: %s", address.sun_path, strerror(saved));
}

void ctl_control_close(struct ctl_control *control)
{
    if (control == NULL)
        return;
    close(control->fd);
    free(control->where);
    free(control->buf);
    free(control);
}

/* Send a request; takes the reference. */
static enum ctl_exit control_send(struct ctl_control *control, json_t *request, char *why)
{
    int64_t deadline = ctl_wait_now() + (int64_t)SEND_SECONDS * 1000;
    char *text = request == NULL ? NULL : json_dumps(request, JSON_COMPACT);
    size_t len, sent = 0;
    enum ctl_exit status = CTL_DONE;
    json_decref(request);
    if (text == NULL)
        return control_fail(why, "out of memory: %s: try again", control->where);
    len = strlen(text);
    text[len++] = '\n'; /* without the 0 at the end of the string */
    while (sent < len && status == CTL_DONE) {
        ssize_t n = send(control->fd, text + sent, len - sent, MSG_NOSIGNAL);
        int saved = errno;
        if (n >= 0)
            sent += (size_t)n;
        else if (saved != EAGAIN && saved != EINTR)
            status = control_fail(why, "lost the connection to fabricd: %s: %s: read its log", control->where,
                                  strerror(saved));
        else if (ctl_wait(control->fd, POLLOUT, deadline) <= 0)
            status =
                control_fail(why, "fabricd does not read: %s: no byte was accepted in %d s: read its log",
                             control->where, SEND_SECONDS);
    }
    free(text);
    return status;
}

/* Return the line that begins at `start`, ended in place; NULL: not complete yet. */
static char *take_line(struct ctl_control *c, size_t *searched, size_t *len)
{
    char *line, *end;
    if (c->buf == NULL)
        return NULL;
    line = c->buf + c->start;
    end = memchr(line + *searched, '\n', c->used - c->start - *searched);
    if (end == NULL) {
        *searched = c->used - c->start;
        return NULL;
    }
    *end = '\0';
    *len = (size_t)(end - line);
    c->start = (size_t)(end - c->buf) + 1;
    return line;
}

static bool control_reserve(struct ctl_control *c)
{
    if (c->start > 0) {
        memmove(c->buf, c->buf + c->start, c->used - c->start);
        c->used -= c->start;
        c->start = 0;
    }
    if (c->cap - c->used < 4096) {
        size_t cap = c->cap == 0 ? 16384 : 2 * c->cap;
        char *grown = realloc(c->buf, cap);
        if (grown == NULL)
            return false;
        c->buf = grown;
        c->cap = cap;
    }
    return true;
}

static enum ctl_exit control_parse(const struct ctl_control *c, const char *text, size_t len, json_t **line,
                                   char *why)
{
    json_error_t error;
    *line = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(*line))
        return CTL_DONE;
    json_decref(*line);
    *line = NULL;
    return control_fail(why, "not an answer of fabricd: %s: %s: use fabricctl and fabricd of one version",
                        c->where, error.text);
}

enum ctl_exit ctl_control_next(struct ctl_control *control, int seconds, json_t **line,
                               char why[static CTL_WHY_SIZE])
{
    int64_t deadline = seconds < 0 ? -1 : ctl_wait_now() + (int64_t)seconds * 1000;
    size_t searched = 0, len;
    *line = NULL;
    for (;;) {
        char *text = take_line(control, &searched, &len);
        ssize_t n;
        int ready;
        if (text != NULL)
            return control_parse(control, text, len, line, why);
        if (control->used - control->start > CTL_ANSWER_MAX)
            return control_fail(why, "the answer is too long: %s: more than %u MiB: ask for less",
                                control->where, CTL_ANSWER_MAX >> 20);
        if (!control_reserve(control))
            return control_fail(why, "out of memory: %s: ask for less", control->where);
        ready = ctl_wait(control->fd, POLLIN, deadline);
        if (ready < 0 && seconds < 0)
            return CTL_DONE;
        if (ready < 0)
            return control_fail(why, "interrupted: %s: fabricd may continue the work", control->where);
        if (ready == 0)
            return control_fail(why, "fabricd does not answer: %s: nothing in %d s: read its log",
                                control->where, seconds);
        n = recv(control->fd, control->buf + control->used, control->cap - control->used, 0);
        if (n > 0)
            control->used += (size_t)n;
        else if (n == 0)
            return control_fail(
                why, "fabricd closed the connection: %s: check whether it stopped (systemctl status fabricd)",
                control->where);
        else if (errno != EAGAIN && errno != EINTR)
            return control_fail(why, "lost the connection to fabricd: %s: %s: read its log", control->where,
                                strerror(errno));
    }
}

/* Report a rejection in the daemon's words. */
static enum ctl_exit control_refusal(const struct ctl_control *c, const json_t *answer, char *why)
{
    const char *message = ctl_text_of(answer, "message");
    json_int_t code = ctl_number_of(answer, "error");
    if (message != NULL)
        return control_fail(why, "%s", message);
    return control_fail(why, "fabricd rejects the request: %s: %s", c->where,
                        code < 0 && code > -1000 ? pmixfab_strerror((int)code) : "no reason given");
}

/* Send one byte, and the descriptor with it. */
static enum ctl_exit send_descriptor(const struct ctl_control *c, int fd, char *why)
{
    char byte = 0;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof fd)];
    } room = {.bytes = {0}};
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof room.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    if (sendmsg(c->fd, &message, MSG_NOSIGNAL) == 1)
        return CTL_DONE;
    return control_fail(why, "cannot send the file to fabricd: %s: %s", c->where, strerror(errno));
}

enum ctl_exit ctl_control_give(struct ctl_control *control, json_t *request, int fd, int seconds,
                               json_t **answer, char why[static CTL_WHY_SIZE])
{
    enum ctl_exit status = control_send(control, request, why);
    json_t *line = NULL;
    *answer = NULL;
    while (status == CTL_DONE && *answer == NULL) {
        const char *progress;
        json_t *mistake;
        size_t i;
        status = ctl_control_next(control, seconds, &line, why);
        progress = ctl_text_of(line, "progress");
        json_array_foreach(json_object_get(line, "mistakes"), i,
                           mistake) /* each mistake of a rejection is a line */
        {
            ctl_error("%s", json_string_length(mistake) > 0 ? json_string_value(mistake) : "?");
        }
        if (ctl_is(line, "ok"))
            *answer = json_incref(line);
        else if (status == CTL_DONE && json_is_false(json_object_get(line, "ok")))
            status = control_refusal(control, line, why);
        else if (status == CTL_DONE && progress != NULL)
            ctl_error("%s", progress);
        else if (fd >= 0 && ctl_is(line, "descriptor"))
            status = send_descriptor(control, fd, why);
        json_decref(line);
    }
    return status;
}

/*
 * Add a page to the previous ones: its rows after theirs, or before them if pages go back in time. The other
 * members are those of the newest page.
 */
static bool add_page(json_t *answer, json_t *page, bool back)
{
    const char *key;
    json_t *rows, *before;
    bool good = true;
    json_object_del(answer, "next");
    json_object_foreach(page, key, rows)
    {
        before = json_object_get(answer, key);
        if (json_is_object(rows) && json_is_object(before))
            good = json_object_update(before, rows) == 0 && good;
        else if (json_is_array(rows) && json_is_array(before) && !back)
            good = json_array_extend(before, rows) == 0 && good;
        else if (json_is_array(rows) && json_is_array(before))
            good = json_array_extend(rows, before) == 0 && json_object_set(answer, key, rows) == 0 && good;
        else
            good = json_object_set(answer, key, rows) == 0 && good;
    }
    return good;
}

/* Request the pages after the first one, and join them. */
static enum ctl_exit ask_pages(struct ctl_control *control, json_t *request, int seconds, json_t *answer,
                               char *why)
{
    const char *op = ctl_text_of(request, "op");
    const bool back = op != NULL && strcmp(op, "history") == 0;
    enum ctl_exit status = CTL_DONE;
    json_t *page;
    while (status == CTL_DONE && json_is_string(json_object_get(answer, "next"))) {
        json_object_set(request, "next", json_object_get(answer, "next"));
        status = ctl_control_give(control, json_incref(request), -1, seconds, &page, why);
        if (status == CTL_DONE && !add_page(answer, page, back))
            status = control_fail(why, "out of memory: %s: ask for less", control->where);
        json_decref(page);
    }
    return status;
}

enum ctl_exit ctl_control_ask(const char *rundir, json_t *request, int seconds, json_t **answer,
                              char why[static CTL_WHY_SIZE])
{
    struct ctl_control *control;
    enum ctl_exit status = ctl_control_open(rundir, &control, why);
    *answer = NULL;
    if (status != CTL_DONE) {
        json_decref(request);
        return status;
    }
    status = ctl_control_give(control, json_incref(request), -1, seconds, answer, why)
                 ?: ask_pages(control, request, seconds, *answer, why);
    if (status != CTL_DONE) {
        json_decref(*answer);
        *answer = NULL;
    }
    json_decref(request);
    ctl_control_close(control);
    return status;
}

/* ---- one request to the daemon, and its answer ---- */

enum ctl_exit ctl_control_only(const struct ctl *ctl, const char *command)
{
    if (ctl->uri == NULL)
        return CTL_DONE;
    return ctl_usage("%s does not work over PMIx: --uri: run it on fabricd's own host, with --rundir",
                     command);
}

/* Report a rejection by the daemon, with a near name if the message names an unknown one. */
static enum ctl_exit tell_refusal(const struct ctl *ctl, const char *why)
{
    const char *const names[] = {ctl->n_args > 0 ? ctl->args[0] : NULL, ctl->host, ctl->sw};
    char hint[CTL_SUGGESTION] = "";
    for (size_t i = 0; i < CTL_COUNT(names) && hint[0] == '\0'; i++)
        if (names[i] != NULL && strstr(why, names[i]) != NULL)
            ctl_suggest(ctl, names[i], CTL_HOSTS | CTL_SWITCHES, hint);
    return ctl_error("%s%s", why, hint);
}

enum ctl_exit ctl_ask(const struct ctl *ctl, json_t *request, int seconds, json_t **answer)
{
    enum ctl_exit status = ctl_control_only(ctl, ctl->command);
    char why[CTL_WHY_SIZE];
    *answer = NULL;
    if (status == CTL_DONE && request == NULL)
        status = ctl_usage("not UTF-8: %s: give a name as fabricctl shows it", ctl->command);
    if (status != CTL_DONE)
        json_decref(request);
    else if (ctl_control_ask(ctl->rundir, request, seconds, answer, why) != CTL_DONE)
        status = tell_refusal(ctl, why);
    return status;
}

enum ctl_exit ctl_ask_show(const struct ctl *ctl, json_t *request, int seconds, ctl_show_fn *show)
{
    json_t *answer;
    enum ctl_exit status = ctl_ask(ctl, request, seconds, &answer) ?: show(ctl, answer);
    json_decref(answer);
    return status;
}

enum ctl_exit ctl_ask_op(const struct ctl *ctl, const char *op, ctl_show_fn *show)
{
    return ctl_ask_show(ctl, json_pack("{s:s}", "op", op), CTL_ANSWER_SECONDS, show);
}

enum ctl_exit ctl_ask_stream(const struct ctl *ctl, json_t *request, struct ctl_control **control,
                             json_t **first)
{
    enum ctl_exit status = ctl_control_only(ctl, ctl_text_of(request, "op"));
    char why[CTL_WHY_SIZE];
    *control = NULL;
    *first = NULL;
    if (status == CTL_DONE && ctl_control_open(ctl->rundir, control, why) != CTL_DONE)
        status = ctl_error("%s", why);
    if (status != CTL_DONE) {
        json_decref(request);
        return status;
    }
    ctl_catch_interrupts();
    if (ctl_control_give(*control, request, -1, CTL_ANSWER_SECONDS, first, why) == CTL_DONE)
        return CTL_DONE;
    ctl_control_close(*control);
    *control = NULL;
    return ctl_error("%s", why);
}
