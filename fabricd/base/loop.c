/* loop.c - watched descriptors and signals, the loop of a role, and messages to the service manager. */
#include <event2/thread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/notify.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/watch.h"
#include "topo/base/text.h"

/* ---- watched descriptors and signals ---- */

struct watch {
    struct event *event;
    watch_fn fn;
    void *cbdata;
};

static void watch_on_event(evutil_socket_t fd, short what, void *arg)
{
    const struct watch *watch = arg;
    (void)what;
    watch->fn(fd, watch->cbdata);
}

static struct watch *watch_make(struct event_base *base, int fd, short events, watch_fn fn, void *cbdata)
{
    struct watch *watch = calloc(1, sizeof(*watch));
    if (watch == NULL)
        return NULL;
    *watch = (struct watch){.fn = fn, .cbdata = cbdata};
    watch->event = event_new(base, fd, events | EV_PERSIST, watch_on_event, watch);
    if (watch->event != NULL && event_add(watch->event, NULL) == 0)
        return watch;
    watch_free(watch);
    return NULL;
}

struct watch *watch_new(struct event_base *base, int fd, enum watch_for ready, watch_fn fn, void *cbdata)
{
    return watch_make(base, fd, ready == WATCH_READ ? EV_READ : EV_WRITE, fn, cbdata);
}

struct watch *watch_signal(struct event_base *base, int number, watch_fn fn, void *cbdata)
{
    return watch_make(base, number, EV_SIGNAL, fn, cbdata);
}

void watch_pause(struct watch *watch)
{
    event_del(watch->event);
}

void watch_resume(struct watch *watch)
{
    event_add(watch->event, NULL);
}

int watch_fd(const struct watch *watch)
{
    return (int)event_get_fd(watch->event);
}

void watch_free(struct watch *watch)
{
    if (watch == NULL)
        return;
    if (watch->event != NULL)
        event_free(watch->event);
    free(watch);
}

/* ---- the loop ---- */

static void loop_on_signal(int signo, void *arg)
{
    struct loop *loop = arg;
    if (signo == SIGHUP) {
        loop->on_hangup(loop->cbdata);
        return;
    }
    log_info("%s: stopping", signo == SIGTERM ? "SIGTERM" : "SIGINT");
    loop->ended = true;
    notify_send("STOPPING=1");
    event_base_loopbreak(loop->base);
}

/* Sent from the loop itself, so that a hanging loop stops sending and the service manager restarts fabricd.
 */
static void loop_on_alive(void *arg)
{
    const struct loop *loop = arg;
    notify_send(NOTIFY_ALIVE);
    timer_after_us(loop->alive, notify_watchdog() / 2);
}

static bool loop_watch(struct loop *loop)
{
    if (notify_watchdog() == 0)
        return true;
    loop->alive = timer_new(loop->base, loop_on_alive, loop);
    if (loop->alive != NULL)
        timer_after_us(loop->alive, notify_watchdog() / 2);
    return loop->alive != NULL;
}

int loop_new(struct loop *loop)
{
    static const int signals[] = {SIGHUP, SIGTERM, SIGINT};
    evthread_use_pthreads();
    loop->base = event_base_new();
    bool ok = loop->base != NULL;
    for (size_t i = 0; ok && i < 3; i++) {
        loop->signals[i] = watch_signal(loop->base, signals[i], loop_on_signal, loop);
        ok = loop->signals[i] != NULL;
    }
    signal(SIGPIPE, SIG_IGN);
    return ok && loop_watch(loop) ? PMIXFAB_OK : PMIXFAB_ERR_NOMEM;
}

void loop_run(struct loop *loop)
{
    while (event_base_loop(loop->base, EVLOOP_ONCE) == 0 && !event_base_got_break(loop->base) &&
           !event_base_got_exit(loop->base))
        if (loop->on_turn != NULL)
            loop->on_turn(loop->cbdata);
}

void loop_free(struct loop *loop)
{
    for (size_t i = 0; i < 3; i++)
        watch_free(loop->signals[i]);
    timer_free(loop->alive);
    if (loop->base != NULL)
        event_base_free(loop->base);
}

/* ---- the service manager ---- */

#define STARTING_S 120

static struct sockaddr_un manager;
static socklen_t manager_size; /* 0: there is no manager */
static int notify_fd = -1;
static int64_t watchdog, starting_told;

/* In the environment, "@" stands for the byte 0 that begins an abstract name. */
static void notify_find(const char *path)
{
    size_t len = path == NULL ? 0 : strlen(path);
    if (len < 2 || len >= sizeof(manager.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    manager.sun_family = AF_UNIX;
    memcpy(manager.sun_path, path, len);
    if (path[0] == '@')
        manager.sun_path[0] = '\0';
    notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify_fd >= 0)
        manager_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

void notify_open(void)
{
    const char *pid = getenv("WATCHDOG_PID"), *time = getenv("WATCHDOG_USEC");
    notify_find(getenv("NOTIFY_SOCKET"));
    const bool ours = time != NULL && (pid == NULL || strtol(pid, NULL, 10) == getpid());
    starting_told = 0;
    watchdog = ours ? strtoll(time, NULL, 10) : 0;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
}

/* Do not wait or fail when the manager does not read. */
void notify_send(const char *assignments)
{
    if (manager_size > 0)
        (void)!sendto(notify_fd, assignments, strlen(assignments), MSG_NOSIGNAL, (struct sockaddr *)&manager,
                      manager_size);
}

void notify_keep(int fd, const char *name)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } passed = {.bytes = {0}};
    char text[80];
    struct iovec part = {text, (size_t)snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%.40s", name)};
    const struct msghdr message = {.msg_name = &manager,
                                   .msg_namelen = manager_size,
                                   .msg_iov = &part,
                                   .msg_iovlen = 1,
                                   .msg_control = passed.bytes,
                                   .msg_controllen = sizeof(passed.bytes)};
    passed.header =
        (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(fd)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&passed.header), &fd, sizeof(fd));
    char before[80]; /* removes a descriptor that has this name */
    snprintf(before, sizeof(before), "FDSTOREREMOVE=1\nFDNAME=%.40s", name);
    notify_send(before);
    if (manager_size > 0)
        (void)!sendmsg(notify_fd, &message, MSG_NOSIGNAL);
}

void notify_status(const char *fmt, ...)
{
    char text[512] = "STATUS=";
    const size_t name = strlen(text);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + name, sizeof(text) - name, fmt, args);
    va_end(args);
    fab_text_clean(text, sizeof(text), text, strlen(text), NULL); /* a name must not become an assignment */
    notify_send(text);
}

void notify_starting(void)
{
    const int64_t now = clock_now(CLOCK_MONOTONIC);
    char text[64];
    if (starting_told != 0 && now - starting_told < 1000000)
        return;
    starting_told = now;
    snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%lld\n" NOTIFY_ALIVE, STARTING_S * 1000000LL);
    notify_send(text);
}

int64_t notify_watchdog(void)
{
    return manager_size > 0 ? watchdog : 0;
}
