/* front.c - the life of the front, as fabricd sees it: start, heartbeat, end, the next one. */
#include "fabricd/front/front.h"

#include <limits.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/timer.h"
#include "fabricd/front/front_note.h"
#include "fabricd/front/front_state.h"
#include "fabricd/process/process.h"
#include "topo/base/text.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define START_MS 60000 /* with a sanitizer the library takes seconds to start */
#else
#define START_MS 10000 /* until it serves */
#endif
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
    return clock_now(CLOCK_MONOTONIC) / 1000;
}

static void front_pulse_after(struct front *front, int64_t milliseconds)
{
    front->pulse_due = front_now() + milliseconds;
    timer_after(front->pulse, milliseconds);
}

/* ---- its end -------------------------------------------------------------------------------------- */

static void front_drop_note(struct front *front)
{
    if (front->note > 0)
        close(front->note);
    front->note = 0;
}

static void front_lost(struct front *front, const char *why)
{
    char text[300], blame[FRONT_BLAME_TEXT];
    const bool served = front->ready;
    front_blame(front, blame);
    front_drop_note(front);
    channel_free(front->channel);
    front->channel = NULL;
    front->child = NULL;
    front->pid = 0;
    front->ready = false;
    timer_cancel(front->pulse);
    snprintf(text, sizeof(text), "%s%s%.200s", why, front->failed.text[0] != '\0' ? ": " : "",
             front->failed.text);
    const int64_t pause = supervisor_lost(&front->life, text, served, front_now(), clock_now(CLOCK_REALTIME));
    front->status.parted = front->status.connected;
    front->status.subscribers = front->status.connected = 0;
    if (!front->wanted) /* it could not start */
        return;
    if (!served && front->life.again.failed > PORT_TRIES)
        front->port = 0; /* somebody else has it by now, and for long */
    log_warning("%s%s; another one takes its place%s", front->life.why, blame,
                pause > 0 ? " after a pause" : "");
    timer_after(front->again, pause);
    front_go_on(front);
    if (front->fns.replaced != NULL)
        front->fns.replaced(front->fns.replaced_cbdata);
}

static void front_kill(struct front *front, const char *why)
{
    child_cancel(front->child);
    front_lost(front, why);
}

static void front_on_child_ended(struct child_result *result, void *cbdata)
{
    struct front *front = cbdata;
    front_lost(front, result->code == PMIXFAB_OK ? "front: it ended" : result->err.text);
}

static void front_on_closed(const char *why, void *cbdata)
{
    struct front *front = cbdata;
    if (front->closed != NULL) /* nor can it put its end off by saying so again */
        return;
    front->closed = why;
    front_pulse_after(front, front->child != NULL ? LEAVE_MS : 0);
}

/* ---- its pulse ------------------------------------------------------------------------------------ */

/* kB of memory that is its own; 0: not known. */
static long front_memory(const struct front *front)
{
    char path[64], line[256];
    long kb = 0;
    if (front->child == NULL) /* another user's, which is not seen from within a unit */
        return front->kb;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)front->pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "RssAnon: %ld kB", &kb) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return kb;
}

/* No unit's front has come for START_MS. */
static void front_is_missing(struct front *front)
{
    struct fab_err missing;
    fab_fail(&missing, PMIXFAB_ERR_TIMEOUT,
             "no front has connected to %.100s/front/socket for %d s: see systemctl status fabricd-front; %s",
             front->config->rundir, START_MS / 1000,
             front->config->role == ROLE_NODE
                 ? "systemctl add-wants fabricd-node.service fabricd-front starts it with a node that serves"
                 : "it must be neither masked nor stopped");
    fab_text_clean(front->life.why, sizeof(front->life.why), missing.text, strlen(missing.text), NULL);
    if (front->wanted)
        log_error("%s", missing.text);
}

static void front_on_pulse(void *arg)
{
    struct front *front = arg;
    char why[100];
    const int64_t now = front_now();
    const char *end = front->child != NULL ? "was killed" : "was let go";
    if (front->channel == NULL) {
        front_is_missing(front);
        return;
    }
    if (now > front->pulse_due + PULSE_MS) /* this process was held up itself: that counts for neither */
        front->asked_since = now;
    const bool hangs = front->asked != front->lives && now - front->asked_since > SILENCE_MS;
    const long kb = front_memory(front);
    if (front->closed != NULL) {
        snprintf(why, sizeof(why), "front: %s", front->closed);
        front_kill(front, why);
        return;
    }
    if (!front->ready && now - front->life.began >= START_MS) {
        snprintf(why, sizeof(why), "front: it has not begun to serve, and %s", end);
        front_kill(front, why);
        return;
    }
    if (hangs || kb > MAX_KB || channel_waiting(front->channel) > MAX_WAITING) {
        if (kb > MAX_KB)
            snprintf(why, sizeof(why), "front: it has grown to %ld MiB, and %s", kb / 1024, end);
        else
            snprintf(why, sizeof(why), "front: it has not answered for %d s, and %s", SILENCE_MS / 1000, end);
        front_kill(front, why);
        return;
    }
    if (!front->ready) {
        front_pulse_after(front, PULSE_MS);
        return;
    }
    if (front->asked == front->lives)
        front->asked_since = now;
    channel_send(front->channel,
                 &(struct front_message){.kind = FRONT_LOG, .a = (uint64_t)front->config->log});
    channel_send(front->channel, &(struct front_message){.kind = FRONT_ALIVE, .a = ++front->asked});
    front_pulse_after(front, PULSE_MS);
}

static bool front_lives(struct front *front, const struct front_message *message)
{
    if (message->a > front->asked || message->b > MAX_TOLD || message->c > MAX_TOLD)
        return false;
    front->lives = message->a;
    front->asked_since = front_now();
    front->status.subscribers = (unsigned)message->b;
    front->status.connected = (unsigned)message->c;
    return true;
}

/* ---- what it says of itself ----------------------------------------------------------------------- */

/* Whoever looks for the address finds it in its file. */
static void front_moved(struct front *front, const char *uri)
{
    struct fab_err err = {""};
    log_warning("front: it serves at %s, and no longer at %s", uri, front->uri);
    snprintf(front->uri, sizeof(front->uri), "%s", uri);
    if (process_write_uri(front->config, front->uri, &err) != PMIXFAB_OK)
        log_error("%s", err.text);
}

static bool front_is_ready(struct front *front, const char *uri, uint64_t holds)
{
    unsigned port;
    if (front->ready || strlen(uri) >= sizeof(front->uri) ||
        !front_uri_read(uri, front->uri, front->config->remote, &port))
        return false;
    front->ready = true;
    front->port = port;
    front->status.holds = (unsigned)holds;
    front_pulse_after(front, PULSE_MS);
    front->asked_since = front_now();
    front->status.served++;
    if (front->life.replaced > 0)
        log_info("front: process %d serves at %s after %lld ms", (int)front->pid, uri,
                 (long long)(front_now() - front->life.began));
    if (front->uri[0] == '\0' && !front->wanted)
        snprintf(front->uri, sizeof(front->uri), "%s", uri);
    else if (strcmp(front->uri, uri) != 0)
        front_moved(front, uri); /* or there was no room for it when fabricd began */
    return true;
}

static void front_has_failed(struct front *front, uint64_t code, const char *why)
{
    fab_fail(&front->failed, code < 1000 ? -(int)code : PMIXFAB_ERR_IO, "%s", why);
    front_on_closed("it cannot serve", front);
}

static bool front_received(const struct front_message *message, void *cbdata)
{
    struct front *front = cbdata;
    switch (message->kind) {
    case FRONT_READY:
        return front_is_ready(front, message->text, message->a);
    case FRONT_FAILED:
        front_has_failed(front, message->a, message->text);
        return true;
    case FRONT_LIVES:
        return front_lives(front, message);
    case FRONT_MEMORY:
        front->kb = message->a < LONG_MAX ? (long)message->a : LONG_MAX;
        return true;
    default:
        return front_take_word(front, message);
    }
}

/* ---- its start ------------------------------------------------------------------------------------ */

/* One is there, at the other end of this socket. */
static int front_begin(struct front *front, int channel, pid_t pid, struct fab_err *err)
{
    const struct channel_fns fns = {.received = front_received, .closed = front_on_closed, .cbdata = front};
    front->note = note_hand_over(channel);
    front->number++;
    front->pid = pid;
    front->kb = 0;
    front->asked_since = front_now();
    supervisor_began(&front->life, front->asked_since);
    front->asked = front->lives = 0;
    front->failed.text[0] = '\0';
    front->closed = NULL;
    if (channel_new(front->base, channel, MAX_MESSAGE, &fns, &front->channel) != PMIXFAB_OK) {
        child_cancel(front->child);
        front->child = NULL;
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "front: out of memory");
    }
    front_tell_all(front);
    front_pulse_after(front, PULSE_MS);
    return PMIXFAB_OK;
}

static void front_on_again(void *arg);

/* Start one, or take one that has connected; where none has yet, it is waited for. */
static int front_next(struct front *front, struct fab_err *err)
{
    int channel = -1;
    if (!front->config->front_unit) {
        const int rc = front_child_start(front, front_on_child_ended, &channel, err);
        return rc == PMIXFAB_OK ? front_begin(front, channel, child_pid(front->child), err) : rc;
    }
    pid_t pid = 0;
    const int rc = front_unit_listen(front, front_on_again, err);
    if (rc == PMIXFAB_OK && (channel = front_unit_take(front, &pid)) >= 0)
        return front_begin(front, channel, pid, err);
    front_pulse_after(front, START_MS);
    return rc;
}

static void front_on_again(void *arg)
{
    struct front *front = arg;
    struct fab_err err = {""};
    if (front->channel == NULL && !timer_pending(front->again) && front_next(front, &err) != PMIXFAB_OK)
        front_lost(front, err.text);
}

/* ---- life ----------------------------------------------------------------------------------------- */

/* The loop runs until it serves or has ended. */
static int front_wait(struct front *front, struct fab_err *err)
{
    bool left = false;
    while (!front->ready && timer_pending(front->pulse) && !left)
        left = event_base_loop(front->base, EVLOOP_ONCE) != 0 || event_base_got_break(front->base);
    if (front->ready || left)
        return PMIXFAB_OK;
    if (front->failed.text[0] != '\0') {
        *err = front->failed;
        return PMIXFAB_ERR_IO;
    }
    return fab_fail(err, PMIXFAB_ERR_IO, "the PMIx server cannot be started: %s",
                    front->life.why[0] != '\0' ? front->life.why : "its process does not answer");
}

struct front *front_new(void)
{
    struct front *front = calloc(1, sizeof(*front));
    if (front != NULL)
        front->unit.waiting = -1;
    return front;
}

void front_free(struct front *front)
{
    if (front == NULL)
        return;
    front_stop(front);
    free(front);
}

/* The library writes files at its start. The rest of fabricd begins without its server, which is tried again.
 */
static bool front_waits_for_room(struct front *front, const struct fab_err *err)
{
    if (front->channel != NULL || front->again == NULL || file_has_room(front->config->rundir))
        return false;
    log_error(
        "%s: the file system of the run directory %s is full: PMIx tools are not served until there is room",
        err->text, front->config->rundir);
    timer_after(front->again, MAX_PAUSE / 10);
    return true;
}

int front_start(struct front *front, struct event_base *base, const struct config *config,
                struct served *served, struct fab_err *err)
{
    front->base = base;
    front->config = config;
    front->served = served;
    front->life = (struct supervisor){.again = {.first = FIRST_PAUSE, .most = MAX_PAUSE, .at_once = AT_ONCE},
                                      .good_ms = GOOD_MS};
    front->again = timer_new(base, front_on_again, front);
    front->pulse = timer_new(base, front_on_pulse, front);
    int rc = front->again == NULL || front->pulse == NULL || front_words_start(front) != PMIXFAB_OK
                 ? fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory")
                 : front_find_users(front, err);
    if (rc == PMIXFAB_OK)
        rc = front_next(front, err);
    if (rc == PMIXFAB_OK)
        rc = front_wait(front, err);
    front->wanted = rc == PMIXFAB_OK || front_waits_for_room(front, err);
    if (!front->wanted)
        front_stop(front);
    else if (rc != PMIXFAB_OK)
        rc = PMIXFAB_OK;
    return rc;
}

void front_stop(struct front *front)
{
    front->wanted = false;
    channel_free(front->channel); /* the front ends when its channel is closed */
    child_leave(front->child, false);
    child_cancel(front->child);
    timer_free(front->again);
    timer_free(front->pulse);
    front_words_stop(front);
    front_unit_stop(front);
    front_child_stop(front);
    front_drop_note(front);
    *front = (struct front){.fns = front->fns, .unit = {.waiting = -1}};
}

const char *front_uri(const struct front *front)
{
    return front->uri;
}

void front_status(const struct front *front, struct front_status *status)
{
    *status = front->status;
    status->pid = front->ready ? front->pid : 0;
    status->replaced = front->life.replaced;
    status->last = front->life.last;
    status->why = front->life.why;
}
