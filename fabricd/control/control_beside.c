/*
 * control_beside.c - answer `status` while the daemon computes: the work runs on a thread, and this thread
 * serves connected and new callers. They get the state from before the work. Other requests wait on their
 * connections until the work is done.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "fabricd/base/work.h"
#include "fabricd/control/connection.h"

#define CALLERS_MOST (2 * CONTROL_MAX_CONNECTIONS) /* connected and new callers */
#define LINE_MOST    4096 /* bytes of a request that is checked; a longer one waits */
#define POLL_MS      10   /* between checks if there is no eventfd */

struct beside {
    struct control *control;
    void (*run)(void *arg);
    void *arg;
    int ended;    /* eventfd: the work has ended; -1: none */
    char *answer; /* with its newline; NULL: out of memory */
    struct beside_caller {
        int fd;
        uid_t uid;
        bool waits;                    /* for the end of the work */
        struct connection *connection; /* of the daemon; NULL: a new caller */
    } callers[CALLERS_MOST];
    unsigned n, n_new;
};

/* Return the present answer to `status`. */
static char *status_text(struct control *control)
{
    struct connection connection = {.control = control, .uid = geteuid()};
    const struct control_op *op = control->ops;
    json_t *request = json_object();
    while (op->name != NULL && strcmp(op->name, "status") != 0)
        op++;
    if (op->name != NULL && request != NULL)
        op->fn(&connection, request);
    json_decref(request);
    char *text = connection.kept == NULL ? NULL : connection_text(connection.kept);
    json_decref(connection.kept);
    return text;
}

static bool asks_for_status(const char *line, size_t len)
{
    json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
    const char *op = json_string_value(json_object_get(request, "op"));
    const bool status = op != NULL && strcmp(op, "status") == 0;
    json_decref(request);
    return status;
}

/* Return the caller's input without removing it from the daemon's or the kernel's buffer. Returns like
 * recv(). */
static ssize_t beside_peek(const struct beside_caller *caller, char line[LINE_MOST], bool *buffered)
{
    struct evbuffer *input =
        caller->connection == NULL ? NULL : bufferevent_get_input(caller->connection->bev);
    *buffered = input != NULL && evbuffer_get_length(input) > 0;
    return *buffered ? evbuffer_copyout(input, line, LINE_MOST)
                     : recv(caller->fd, line, LINE_MOST, MSG_PEEK | MSG_DONTWAIT);
}

/* Answer one line. False: the connection has ended. */
static bool beside_serve(const struct beside *beside, struct beside_caller *caller)
{
    char line[LINE_MOST];
    bool buffered;
    const ssize_t n = beside_peek(caller, line, &buffered);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    const char *end = memchr(line, '\n', (size_t)n);
    caller->waits = end == NULL || beside->answer == NULL || !asks_for_status(line, (size_t)(end - line));
    if (caller->waits)
        return true;
    const size_t len = (size_t)(end - line) + 1, answer = strlen(beside->answer);
    const bool taken = buffered ? evbuffer_drain(bufferevent_get_input(caller->connection->bev), len) == 0
                                : recv(caller->fd, line, len, MSG_DONTWAIT) == (ssize_t)len;
    return taken && send(caller->fd, beside->answer, answer, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)answer;
}

/* End a new connection; leave a connection of the daemon for the daemon to close. */
static void beside_end(struct beside *beside, struct beside_caller *caller)
{
    if (caller->connection != NULL) {
        shutdown(caller->fd, SHUT_RDWR);
        caller->waits = true;
        return;
    }
    close(caller->fd);
    *caller = beside->callers[--beside->n];
    beside->n_new--;
}

/* Take over the connections without waiting requests. */
static void take_connections(struct beside *beside)
{
    struct connection *connection;
    DL_FOREACH(beside->control->connections, connection)
    {
        if (connection->waits != 0 || connection->pendings != NULL || connection->closing ||
            connection->ended || connection_unread(connection) > 0 ||
            (bufferevent_get_enabled(connection->bev) & EV_READ) == 0 || beside->n == CONTROL_MAX_CONNECTIONS)
            continue;
        struct beside_caller *caller = &beside->callers[beside->n++];
        *caller = (struct beside_caller){.fd = bufferevent_getfd(connection->bev), .connection = connection};
        if (evbuffer_get_length(bufferevent_get_input(connection->bev)) > 0 && !beside_serve(beside, caller))
            beside_end(beside, caller);
    }
}

/* Accept a caller, or refuse it above the bounds of its user, so that no user can block others. */
static void beside_accept(struct beside *beside, int listener)
{
    struct ucred caller;
    socklen_t size = sizeof(caller);
    unsigned same = 0;
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    const bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &caller, &size) == 0;
    for (unsigned i = 0; known && i < beside->n; i++)
        same += beside->callers[i].connection == NULL && beside->callers[i].uid == caller.uid;
    if (!known || caller.uid == beside->control->refused ||
        !control_has_free_place(beside->control, caller.uid, beside->n_new, same)) {
        close(fd);
        return;
    }
    beside->callers[beside->n++] = (struct beside_caller){.fd = fd, .uid = caller.uid};
    beside->n_new++;
}

/* Wait for one event and handle it. */
static void beside_tend(void *arg)
{
    struct beside *beside = arg;
    struct pollfd fds[CALLERS_MOST + 2];
    const unsigned n = beside->n;
    const int listener =
        beside->control->listener == NULL ? -1 : evconnlistener_get_fd(beside->control->listener);
    for (unsigned i = 0; i < n; i++)
        fds[i] = (struct pollfd){beside->callers[i].waits ? -1 : beside->callers[i].fd, POLLIN, 0};
    fds[n] = (struct pollfd){listener, POLLIN, 0};
    fds[n + 1] = (struct pollfd){beside->ended, POLLIN, 0};
    if (poll(fds, n + 2, beside->ended < 0 ? POLL_MS : -1) <= 0)
        return;
    if (fds[n].revents != 0)
        beside_accept(beside, listener);
    for (unsigned i = n; i-- > 0;)
        if (fds[i].revents != 0 && !beside_serve(beside, &beside->callers[i]))
            beside_end(beside, &beside->callers[i]);
}

static void beside_run(void *arg)
{
    const struct beside *beside = arg;
    beside->run(beside->arg);
    if (beside->ended >= 0)
        (void)eventfd_write(beside->ended, 1);
}

void control_beside(struct control *control, void (*run)(void *arg), void *arg)
{
    if (control == NULL) {
        run(arg);
        return;
    }
    struct beside beside = {.control = control,
                            .run = run,
                            .arg = arg,
                            .ended = eventfd(0, EFD_CLOEXEC),
                            .answer = status_text(control)};
    take_connections(&beside);
    work_beside(beside_run, &beside, beside_tend, &beside);
    if (beside.ended >= 0)
        close(beside.ended);
    for (unsigned i = 0; i < beside.n; i++)
        if (beside.callers[i].connection == NULL)
            control_accepted(control, beside.callers[i].fd);
    free(beside.answer);
}
