/* checker.c - the life of the checker, as fabricd sees it, and the questions on their way. */
#include "fabricd/checker/checker_state.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <munge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"

#define LOOK_MS   100   /* between looks whether an answer is due */
#define LATE_MS   1000  /* a look that comes so late: this process was held up itself */
#define GOOD_MS   10000 /* one that lived so long was a good one */
#define AT_ONCE   3     /* so many that were not are replaced at once, */
#define PAUSE_MS  500   /* the next after so many milliseconds; then twice as many */
#define MAX_PAUSE 5000
#define MOST_KEPT (4 * (CHECKER_HEAD + CHECKER_MAX)) /* bytes of answers */

struct asked {
    struct asked *prev, *next; /* in the order of asking */
    struct checker_question question;
    char *text;
    unsigned times; /* that it was given to a checker */
    int64_t since;  /* the last time */
    checker_done_fn done;
    void *cbdata;
};

static int64_t checker_now(void)
{
    return clock_now(CLOCK_MONOTONIC) / 1000;
}

static void asked_free(struct asked *one)
{
    free(one->text);
    free(one);
}

/* Nobody answers these. */
static void asked_refuse(struct asked *list)
{
    struct asked *one, *next;
    DL_FOREACH_SAFE(list, one, next)
    {
        one->done(NULL, one->cbdata);
        asked_free(one);
    }
}

static void look_after(struct checker *checker, int64_t milliseconds)
{
    checker->look_due = checker_now() + milliseconds;
    timer_after(checker->look, milliseconds);
}

/* ---- the lock is held ----------------------------------------------------------------------------- */

/* Hand over what waits, as much as it can do at once. */
static void checker_hand_over(struct checker *checker)
{
    while (checker->to != NULL && checker->waiting != NULL && checker->n_under_way < CHECKER_AT_ONCE) {
        struct asked *one = checker->waiting;
        size_t size;
        uint8_t *bytes = checker_put_question(&one->question, &size);
        DL_DELETE(checker->waiting, one);
        DL_APPEND(checker->under_way, one); /* what could not be put is not answered in time */
        checker->n_under_way++;
        one->times++;
        one->since = checker_now();
        if (bytes != NULL)
            bufferevent_write(checker->to, bytes, size);
        free(bytes);
    }
}

static struct asked *checker_take_all(struct checker *checker)
{
    struct asked *all = checker->under_way;
    DL_CONCAT(all, checker->waiting);
    checker->under_way = checker->waiting = NULL;
    checker->n_under_way = 0;
    return all;
}

/* It died: another one is asked again, once. Munge opens a credential once, so this is safe. */
static struct asked *checker_take_those_asked_twice(struct checker *checker)
{
    struct asked *twice = NULL, *again = NULL, *one, *next;
    DL_FOREACH_SAFE(checker->under_way, one, next)
    {
        if (one->times > 1)
            DL_APPEND(twice, one);
        else
            DL_APPEND(again, one);
    }
    DL_CONCAT(again, checker->waiting);
    checker->under_way = NULL;
    checker->waiting = again;
    checker->n_under_way = 0;
    return twice;
}

/* ---- its end -------------------------------------------------------------------------------------- */

static void checker_lost(struct checker *checker, const char *why, bool hung)
{
    checker->child = NULL;
    checker->hung = hung;
    const int64_t pause =
        supervisor_lost(&checker->life, why, true, checker_now(), clock_now(CLOCK_REALTIME));
    log_warning("%s; another one takes its place%s", checker->life.why,
                pause > 0 ? ", not before a pause" : "");
    pthread_mutex_lock(&checker->lock);
    struct bufferevent *to = checker->to;
    checker->to = NULL;
    struct asked *refused = hung ? checker_take_all(checker) : checker_take_those_asked_twice(checker);
    if (checker->waiting != NULL)
        timer_fire(checker->bell);
    pthread_mutex_unlock(&checker->lock);
    bufferevent_free(to);
    asked_refuse(refused);
}

static void checker_on_ended(struct child_result *result, void *cbdata)
{
    struct checker *checker = cbdata;
    checker_lost(checker, result->code == PMIXFAB_OK ? "checker: it ended" : result->err.text, false);
}

/* Is there one that has been with it for too long? */
static const char *checker_overdue(struct checker *checker)
{
    const int64_t now = checker_now();
    const bool held_up = now > checker->look_due + LATE_MS; /* its answer may be here, unread */
    const char *what = NULL;
    struct asked *one;
    pthread_mutex_lock(&checker->lock);
    DL_FOREACH(checker->under_way, one)
    {
        const bool is_name = one->question.kind == CHECKER_NAME;
        if (held_up)
            one->since = now;
        else if (now - one->since >= (is_name ? CHECKER_NAME_MS : CHECKER_PATIENCE_MS))
            what = is_name ? "a name server" : "munged";
    }
    const bool more = checker->under_way != NULL;
    pthread_mutex_unlock(&checker->lock);
    if (more && what == NULL)
        look_after(checker, LOOK_MS);
    return what;
}

static void checker_on_look(void *arg)
{
    struct checker *checker = arg;
    char why[120];
    const char *hangs = checker->child == NULL ? NULL : checker_overdue(checker);
    if (checker->child == NULL || (hangs == NULL && !checker->broken))
        return;
    if (checker->broken)
        snprintf(why, sizeof(why), "checker: what it says is no answer");
    else
        snprintf(why, sizeof(why), "checker: it has waited for %s for too long, and was killed", hangs);
    child_cancel(checker->child);
    checker_lost(checker, why, true);
}

/* ---- its answers ---------------------------------------------------------------------------------- */

static void checker_take_answer(struct checker *checker, const struct checker_answer *answer)
{
    struct asked *one;
    pthread_mutex_lock(&checker->lock);
    DL_FOREACH(checker->under_way, one)
    {
        if (one->question.number == answer->number)
            break;
    }
    if (one != NULL) {
        DL_DELETE(checker->under_way, one);
        checker->n_under_way--;
        checker_hand_over(checker);
    }
    pthread_mutex_unlock(&checker->lock);
    if (one == NULL)
        return;
    /* The checker before may have opened it, and died before it could say so. */
    const bool opened_before = one->times > 1 && one->question.kind == CHECKER_CREDENTIAL &&
                               answer->code == (int)EMUNGE_CRED_REPLAYED;
    one->done(opened_before ? NULL : answer, one->cbdata);
    asked_free(one);
}

static size_t checker_on_said(const unsigned char *bytes, size_t n, void *cbdata)
{
    struct checker *checker = cbdata;
    size_t used = 0;
    while (!checker->broken && n - used >= CHECKER_HEAD) {
        const size_t length = checker_length(bytes + used);
        struct checker_answer answer;
        if (length > 0 && n - used < CHECKER_HEAD + length)
            break;
        if (checker_read_answer(bytes + used + CHECKER_HEAD, length, &answer) != PMIXFAB_OK) {
            checker->broken = true;
            timer_fire(checker->look);
            break;
        }
        checker_take_answer(checker, &answer);
        used += CHECKER_HEAD + length;
    }
    return checker->broken ? n : used;
}

/* ---- its start ------------------------------------------------------------------------------------ */

static int checker_start_child(struct checker *checker, struct fab_err *err)
{
    char daemon[16];
    int ends[2];
    snprintf(daemon, sizeof(daemon), "%d", (int)getpid());
    char *argv[] = {"fabricd", CHECKER_CHILD_OPTION, daemon, NULL};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "checker: no socket: %s", strerror(errno));
    const struct child_order order = {.what = "checker",
                                      .argv = argv,
                                      .channel = ends[1],
                                      .limit = MOST_KEPT,
                                      .said = checker_on_said,
                                      .done = checker_on_ended,
                                      .cbdata = checker};
    int rc = child_start(checker->base, &order, &checker->child, err);
    close(ends[1]);
    evutil_make_socket_nonblocking(ends[0]);
    struct bufferevent *to =
        rc != PMIXFAB_OK
            ? NULL
            : bufferevent_socket_new(checker->base, ends[0], BEV_OPT_CLOSE_ON_FREE | BEV_OPT_THREADSAFE);
    if (to == NULL) {
        close(ends[0]);
        child_cancel(checker->child);
        checker->child = NULL;
        return rc != PMIXFAB_OK ? rc : fab_fail(err, PMIXFAB_ERR_NOMEM, "checker: out of memory");
    }
    bufferevent_disable(to, EV_READ);
    checker->broken = false;
    supervisor_began(&checker->life, checker_now());
    pthread_mutex_lock(&checker->lock);
    checker->to = to;
    pthread_mutex_unlock(&checker->lock);
    return PMIXFAB_OK;
}

/* The next one, if it is time. */
static bool checker_is_there(struct checker *checker)
{
    struct fab_err err = {""};
    if (checker->child != NULL)
        return true;
    if (supervisor_wait(&checker->life, checker_now()) > 0)
        return false;
    const int rc = checker_start_child(checker, &err);
    if (rc != PMIXFAB_OK) {
        log_error("%s", err.text);
        checker->hung = true; /* callers are not kept waiting */
        checker->life.not_before = checker_now() + PAUSE_MS;
    }
    return rc == PMIXFAB_OK;
}

/* Something was asked, or a pause is over. */
static void checker_on_bell(void *arg)
{
    struct checker *checker = arg;
    struct asked *refused = NULL;
    const bool there = checker_is_there(checker);
    pthread_mutex_lock(&checker->lock);
    if (there)
        checker_hand_over(checker);
    else if (checker->hung)
        refused = checker_take_all(checker);
    const bool look = checker->under_way != NULL && !timer_pending(checker->look);
    const bool wait = checker->waiting != NULL && !there;
    pthread_mutex_unlock(&checker->lock);
    if (look)
        look_after(checker, LOOK_MS);
    if (wait)
        timer_after(checker->bell, supervisor_wait(&checker->life, checker_now()) + 1);
    asked_refuse(refused);
}

/* ---- questions ------------------------------------------------------------------------------------ */

bool checker_ask(struct checker *checker, enum checker_kind kind, const char *text, checker_done_fn done,
                 void *cbdata)
{
    struct asked *one = calloc(1, sizeof(*one));
    if (one == NULL || (one->text = strdup(text)) == NULL) {
        free(one);
        return false;
    }
    one->done = done;
    one->cbdata = cbdata;
    pthread_mutex_lock(&checker->lock);
    const bool running = checker->running;
    if (running) {
        one->question = (struct checker_question){.kind = kind, .number = ++checker->last, .text = one->text};
        DL_APPEND(checker->waiting, one);
        timer_fire(checker->bell);
    }
    pthread_mutex_unlock(&checker->lock);
    if (!running)
        asked_free(one);
    return running;
}

/* ---- life ----------------------------------------------------------------------------------------- */

int checker_start_alone(struct event_base *base, struct checker **out)
{
    struct checker *checker = *out = calloc(1, sizeof(*checker));
    if (checker == NULL)
        return PMIXFAB_ERR_NOMEM;
    pthread_mutex_init(&checker->lock, NULL);
    checker->base = base;
    checker->life = (struct supervisor){.again = {.first = PAUSE_MS, .most = MAX_PAUSE, .at_once = AT_ONCE},
                                        .good_ms = GOOD_MS};
    checker->bell = timer_new(base, checker_on_bell, checker);
    checker->look = timer_new(base, checker_on_look, checker);
    checker->running = checker->bell != NULL && checker->look != NULL;
    if (checker->running)
        return PMIXFAB_OK;
    checker_free(checker);
    *out = NULL;
    return PMIXFAB_ERR_NOMEM;
}

void checker_stop(struct checker *checker)
{
    if (checker == NULL)
        return;
    pthread_mutex_lock(&checker->lock);
    checker->running = false;
    struct asked *refused = checker_take_all(checker);
    struct bufferevent *to = checker->to;
    checker->to = NULL;
    pthread_mutex_unlock(&checker->lock);
    child_cancel(checker->child);
    checker->child = NULL;
    if (to != NULL)
        bufferevent_free(to);
    timer_free(checker->bell);
    timer_free(checker->look);
    checker->bell = checker->look = NULL;
    asked_refuse(refused);
}

void checker_free(struct checker *checker)
{
    if (checker == NULL)
        return;
    checker_stop(checker);
    pthread_mutex_destroy(&checker->lock);
    free(checker);
}

void checker_status(const struct checker *checker, struct checker_status *status)
{
    *status = (struct checker_status){.pid = checker->child == NULL ? 0 : child_pid(checker->child),
                                      .replaced = checker->life.replaced,
                                      .last = checker->life.last,
                                      .why = checker->life.why};
}
