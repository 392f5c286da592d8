/* front.c - the life of the front, as fabricd sees it: start, heartbeat, end, the next one. */
#include "fabricd/front/front.h"

#include <errno.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/front/note.h"
#include "fabricd/front/refusals.h"
#include "fabricd/front/state.h"
#include "fabricd/process/process.h"
#include "fabricd/util/log.h"
#include "fabricd/util/loop.h"
#include "fabricd/util/now.h"
#include "topo/base/text.h"

#define FRONT_USER "fabricd-front"

#define START_MS    10000 /* until it serves */
#define PULSE_MS    500   /* between questions whether it lives */
#define SILENCE_MS  2000  /* without an answer: then it hangs */
#define LEAVE_MS    100   /* from the end of its channel to its own, which says more */
#define GOOD_MS     10000 /* one that lived so long was a good one */
#define AT_ONCE     3     /* so many that were not are replaced at once, */
#define PORT_TRIES  12    /* so many that could not serve: then at another port */
#define FIRST_PAUSE 50    /* the next after so many milliseconds; then twice as many */
#define MAX_PAUSE   30000
#define MAX_MESSAGE (((size_t)1 << 20) + 4096) /* a credential */
#define MAX_WAITING ((size_t)64 << 20)         /* that it has not read */
#define MAX_TOLD    (1u << 20)                 /* more are not connected to anything */
#define MAX_KB      (1024L * 1024)             /* of memory of its own */

static int64_t front_now(void)
{
    return microseconds_now(CLOCK_MONOTONIC) / 1000;
}

static void front_pulse_after(int64_t milliseconds)
{
    front.pulse_due = front_now() + milliseconds;
    loop_after(front.pulse, milliseconds);
}

/* ---- its end -------------------------------------------------------------------------------------- */

static void front_drop_note(void)
{
    if (front.note > 0)
        close(front.note);
    front.note = 0;
}

static void front_lost(const char *why)
{
    static char text[300];
    char blame[FRONT_BLAME_TEXT];
    const bool served = front.ready;
    const bool good = served && front_now() - front.began > GOOD_MS;
    front_blame(front.note, front.node_uid, front.status.origin, blame);
    front_drop_note();
    channel_free(front.channel);
    front.channel = NULL;
    front.child = NULL;
    front.ready = false;
    event_del(front.pulse);
    front.bad = good ? 0 : front.bad + 1;
    front.pause = front.bad <= AT_ONCE ? 0 : front.bad == AT_ONCE + 1 ? FIRST_PAUSE : front.pause * 2;
    if (front.pause > MAX_PAUSE)
        front.pause = MAX_PAUSE;
    snprintf(text, sizeof(text), "%s%s%.200s", why, front.failed.text[0] != '\0' ? ": " : "",
             front.failed.text);
    fab_text_clean(text, sizeof(text), text, strlen(text), NULL);
    front.status.why = text;
    front.status.parted = front.status.connected;
    front.status.subscribers = front.status.connected = 0;
    if (!front.wanted) /* it could not start */
        return;
    if (!served && front.bad > PORT_TRIES)
        front.port = 0; /* somebody else has it by now, and for long */
    front.status.replaced++;
    front.status.last = microseconds_now(CLOCK_REALTIME);
    log_warning("%s%s; another one takes its place%s", text, blame, front.pause > 0 ? " after a pause" : "");
    loop_after(front.again, front.pause);
    front_go_on();
    if (front_fns.replaced != NULL)
        front_fns.replaced(front_fns.replaced_cbdata);
}

static void front_kill(const char *why)
{
    child_cancel(front.child);
    front_lost(why);
}

static void front_on_child_ended(struct child_result *result, void *cbdata)
{
    (void)cbdata;
    front_lost(result->code == PMIXFAB_OK ? "front: it ended" : result->err.text);
}

static void front_on_closed(const char *why, void *cbdata)
{
    (void)cbdata;
    if (front.closed != NULL) /* nor can it put its end off by saying so again */
        return;
    front.closed = why;
    front_pulse_after(LEAVE_MS);
}

/* ---- its pulse ------------------------------------------------------------------------------------ */

/* kB of memory that is its own; 0: not known. */
static long front_memory(void)
{
    char path[64], line[256];
    long kb = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)child_pid(front.child));
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "RssAnon: %ld kB", &kb) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return kb;
}

static void front_on_pulse(evutil_socket_t fd, short what, void *arg)
{
    char why[100];
    const int64_t now = front_now();
    (void)fd, (void)what, (void)arg;
    if (now > front.pulse_due + PULSE_MS) /* this process was held up itself: that counts for neither */
        front.asked_since = now;
    const bool hangs = front.asked != front.lives && now - front.asked_since > SILENCE_MS;
    const long kb = front_memory();
    if (front.closed != NULL) {
        snprintf(why, sizeof(why), "front: %s", front.closed);
        front_kill(why);
        return;
    }
    if (!front.ready && now - front.began >= START_MS) {
        front_kill("front: it has not begun to serve, and was killed");
        return;
    }
    if (hangs || kb > MAX_KB || channel_waiting(front.channel) > MAX_WAITING) {
        if (kb > MAX_KB)
            snprintf(why, sizeof(why), "front: it has grown to %ld MiB, and was killed", kb / 1024);
        else
            snprintf(why, sizeof(why), "front: it has not answered for %d s, and was killed",
                     SILENCE_MS / 1000);
        front_kill(why);
        return;
    }
    if (!front.ready) {
        front_pulse_after(PULSE_MS);
        return;
    }
    if (front.asked == front.lives)
        front.asked_since = now;
    channel_send(front.channel, &(struct front_message){.kind = FRONT_LOG, .a = (uint64_t)front.config->log});
    channel_send(front.channel, &(struct front_message){.kind = FRONT_ALIVE, .a = ++front.asked});
    front_pulse_after(PULSE_MS);
}

static bool front_lives(const struct front_message *message)
{
    if (message->a > front.asked || message->b > MAX_TOLD || message->c > MAX_TOLD)
        return false;
    front.lives = message->a;
    front.asked_since = front_now();
    front.status.subscribers = (unsigned)message->b;
    front.status.connected = (unsigned)message->c;
    return true;
}

/* ---- what it says of itself ----------------------------------------------------------------------- */

/* Whoever looks for the address finds it in its file. */
static void front_moved(const char *uri)
{
    struct fab_err err = {""};
    log_warning("front: it serves at %s, and no longer at %s", uri, front.uri);
    snprintf(front.uri, sizeof(front.uri), "%s", uri);
    if (process_write_uri(front.config, front.uri, &err) != PMIXFAB_OK)
        log_error("%s", err.text);
}

static bool front_is_ready(const char *uri)
{
    unsigned port;
    if (front.ready || strlen(uri) >= sizeof(front.uri) ||
        !front_uri_read(uri, front.uri, front.config->remote, &port))
        return false;
    front.ready = true;
    front.port = port;
    front_pulse_after(PULSE_MS);
    front.asked_since = front_now();
    if (front.status.replaced > 0)
        log_info("front: process %d serves at %s after %lld ms", (int)child_pid(front.child), uri,
                 (long long)(front_now() - front.began));
    if (front.uri[0] == '\0')
        snprintf(front.uri, sizeof(front.uri), "%s", uri);
    else if (strcmp(front.uri, uri) != 0)
        front_moved(uri);
    return true;
}

static void front_has_failed(uint64_t code, const char *why)
{
    fab_fail(&front.failed, code < 1000 ? -(int)code : PMIXFAB_ERR_IO, "%s", why);
    front_on_closed("it cannot serve", NULL);
}

static bool front_received(const struct front_message *message, void *cbdata)
{
    (void)cbdata;
    switch (message->kind) {
    case FRONT_READY:
        return front_is_ready(message->text);
    case FRONT_FAILED:
        front_has_failed(message->a, message->text);
        return true;
    case FRONT_LIVES:
        return front_lives(message);
    default:
        return front_take_word(message);
    }
}

/* ---- its start ------------------------------------------------------------------------------------ */

/* The folder of the library's files, which a front of another user cannot make. */
static int make_folder(struct fab_err *err)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/pmix", front.config->rundir);
    if ((mkdir(path, 0755) != 0 && errno != EEXIST) || lchown(path, front.status.uid, front.gid) != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "%.200s: cannot be made for the user " FRONT_USER ": %s", path,
                        strerror(errno));
    return PMIXFAB_OK;
}

/* One of another user cannot remove it either. */
static void remove_folder(void)
{
    char path[4096];
    if (!front.status.separated)
        return;
    snprintf(path, sizeof(path), "%s/pmix", front.config->rundir);
    rmdir(path);
}

/* For the front's command line; "-": nobody. */
static void put_id(char text[16], bool known, unsigned id)
{
    if (known)
        snprintf(text, 16, "%u", id);
    else
        snprintf(text, 16, "-");
}

/* A service manager may keep of root's powers those that a process of another user needs. */
static bool front_may_be_another(void)
{
    static const unsigned long needed[] = {CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_KILL};
    bool may = geteuid() == 0;
    for (size_t i = 0; may && i < sizeof(needed) / sizeof(needed[0]); i++)
        may = prctl(PR_CAPBSET_READ, needed[i], 0, 0, 0) == 1;
    return may;
}

/* Once: a directory of users that does not answer later must not decide as whom the next one runs. */
static int front_find_users(struct fab_err *err)
{
    const char *names[] = {front_may_be_another() ? FRONT_USER : NULL, front.config->node_user};
    for (int i = 0; i < 2; i++) {
        struct passwd entry, *user = NULL;
        char buffer[4096];
        int failed = names[i] == NULL ? 0 : getpwnam_r(names[i], &entry, buffer, sizeof(buffer), &user);
        if (failed != 0)
            return fab_fail(err, PMIXFAB_ERR_IO, "the user %.60s cannot be looked up: %s", names[i],
                            strerror(failed));
        if (i == 0 && user != NULL) {
            front.status.separated = true;
            front.status.uid = user->pw_uid;
            front.gid = user->pw_gid;
        }
        if (i == 1)
            front.node_uid = user == NULL ? 0 : user->pw_uid;
    }
    return PMIXFAB_OK;
}

/* Before the channel speaks it needs this only: whose child it is, and as whom it runs. */
static int front_spawn(int channel, struct fab_err *err)
{
    char daemon[16], uid[16], gid[16];
    if (front.status.separated && make_folder(err) != PMIXFAB_OK)
        return PMIXFAB_ERR_IO;
    snprintf(daemon, sizeof(daemon), "%d", (int)getpid());
    put_id(uid, front.status.separated, front.status.uid);
    put_id(gid, front.status.separated, front.gid);
    char *argv[] = {"fabricd", FRONT_CHILD_OPTION, daemon, uid, gid, NULL};
    const struct child_order order = {.what = "front",
                                      .argv = argv,
                                      .channel = channel,
                                      .logs = true,
                                      .many = true,
                                      .limit = 4096,
                                      .done = front_on_child_ended};
    return child_start(front.base, &order, &front.child, err);
}

static int front_start_child(struct fab_err *err)
{
    static const struct channel_fns fns = {.received = front_received, .closed = front_on_closed};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "front: no socket: %s", strerror(errno));
    front.note = note_hand_over(ends[0]);
    int rc = front_spawn(ends[1], err);
    close(ends[1]);
    if (rc != PMIXFAB_OK) {
        close(ends[0]);
        return rc;
    }
    front.number++;
    front.began = front.asked_since = front_now();
    front.asked = front.lives = 0;
    front.failed.text[0] = '\0';
    front.closed = NULL;
    if (channel_new(front.base, ends[0], MAX_MESSAGE, &fns, &front.channel) != PMIXFAB_OK) {
        child_cancel(front.child);
        front.child = NULL;
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "front: out of memory");
    }
    front_tell_all();
    front_pulse_after(PULSE_MS);
    return PMIXFAB_OK;
}

static void front_on_again(evutil_socket_t fd, short what, void *arg)
{
    struct fab_err err = {""};
    (void)fd, (void)what, (void)arg;
    if (front_start_child(&err) != PMIXFAB_OK)
        front_lost(err.text);
}

/* ---- life ----------------------------------------------------------------------------------------- */

/* The loop runs until it serves or has ended. */
static int front_wait(struct fab_err *err)
{
    bool left = false;
    while (!front.ready && front.child != NULL && !left)
        left = event_base_loop(front.base, EVLOOP_ONCE) != 0 || event_base_got_break(front.base);
    if (front.ready || left)
        return PMIXFAB_OK;
    if (front.failed.text[0] != '\0') {
        *err = front.failed;
        return PMIXFAB_ERR_IO;
    }
    return fab_fail(err, PMIXFAB_ERR_IO, "the PMIx server cannot be started: %s",
                    front.status.why != NULL ? front.status.why : "its process does not answer");
}

int front_start(struct event_base *base, const struct config *config, struct fab_err *err)
{
    front.base = base;
    front.config = config;
    front.again = evtimer_new(base, front_on_again, NULL);
    front.pulse = evtimer_new(base, front_on_pulse, NULL);
    int rc = front.again == NULL || front.pulse == NULL || front_words_start() != PMIXFAB_OK
                 ? fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory")
                 : front_find_users(err);
    if (rc == PMIXFAB_OK)
        rc = front_start_child(err);
    if (rc == PMIXFAB_OK)
        rc = front_wait(err);
    front.wanted = rc == PMIXFAB_OK;
    if (rc != PMIXFAB_OK)
        front_stop();
    return rc;
}

void front_stop(void)
{
    front.wanted = false;
    channel_free(front.channel); /* at the end of it the front ends by itself */
    child_leave(front.child, false);
    child_cancel(front.child);
    loop_event_free(front.again);
    loop_event_free(front.pulse);
    front_words_stop();
    remove_folder();
    front_drop_note();
    refusals_clear();
    front = (struct front){.config = NULL};
}

const char *front_uri(void)
{
    return front.uri;
}

void front_status(struct front_status *status)
{
    *status = front.status;
    status->pid = front.ready ? child_pid(front.child) : 0;
    if (status->why == NULL)
        status->why = "";
}
