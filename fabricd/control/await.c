#include "fabricd/control/connection.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/base/timer.h"

static const char *const event_names[AWAIT_EVENTS] = {"pending",  "updated", "sweep", "light-sweep", "scan",
                                                      "delivery", "export",  "hook",  "pmix"};

/* A waiting caller. */
struct awaiting {
    struct pending pending; /* first member */
    struct awaiting *prev, *next;
    struct control *control;
    struct timer *deadline;
    unsigned seconds;
    enum { AWAIT_IDLE, AWAIT_GENERATION, AWAIT_EVENT } until;
    enum await_event event;
    uint64_t least; /* generation, or count */
};

static void await_collect(const struct control *control, struct await_facts *out)
{
    *out = (struct await_facts){0};
    control->await_facts(control->owner, out);
    out->counts[AWAIT_PENDING] = control->announced[AWAIT_PENDING];
    out->counts[AWAIT_UPDATED] = control->announced[AWAIT_UPDATED];
}

static bool await_reached(const struct awaiting *a, const struct await_facts *facts)
{
    return a->until == AWAIT_IDLE         ? facts->busy == NULL
           : a->until == AWAIT_GENERATION ? facts->generation >= a->least
                                          : facts->counts[a->event] >= a->least;
}

/* ---- end of a wait -------------------------------------------------------------------------------- */

static void await_free(struct awaiting *a)
{
    DL_DELETE(a->control->awaiting, a);
    timer_free(a->deadline);
    free(a);
}

static void await_on_caller_gone(struct pending *pending)
{
    await_free((struct awaiting *)pending);
}

/* End a wait whose answer is sent. The connection may end here. */
static void await_end(struct awaiting *a)
{
    a->pending.gone = NULL;
    connection_answered(&a->pending);
    await_free(a);
}

static void await_answer(struct awaiting *a, const struct await_facts *facts)
{
    json_t *answer = json_pack("{s:b, s:I}", "ok", 1, "generation", (json_int_t)facts->generation);
    if (a->until == AWAIT_EVENT)
        json_object_set_new(answer, "count", json_integer((json_int_t)facts->counts[a->event]));
    connection_send(a->pending.connection, answer);
    await_end(a);
}

static void await_on_deadline(void *arg)
{
    struct awaiting *a = arg;
    struct connection *connection = a->pending.connection;
    struct await_facts facts;
    await_collect(a->control, &facts);
    if (await_reached(a, &facts)) {
        await_answer(a, &facts);
        return;
    }
    if (a->until == AWAIT_IDLE)
        connection_fail(connection, PMIXFAB_ERR_TIMEOUT, "await: not idle within %u s: %s is running",
                        a->seconds, facts.busy);
    else if (a->until == AWAIT_GENERATION)
        connection_fail(connection, PMIXFAB_ERR_TIMEOUT,
                        "await: no generation %" PRIu64 " within %u s: generation %" PRIu64 " is served",
                        a->least, a->seconds, facts.generation);
    else
        connection_fail(connection, PMIXFAB_ERR_TIMEOUT,
                        "await: no %s within %u s: %" PRIu64 " since the start", event_names[a->event],
                        a->seconds, facts.counts[a->event]);
    await_end(a);
}

static void await_on_turn(void *arg)
{
    const struct control *control = arg;
    struct awaiting *a, *next;
    struct await_facts facts;
    await_collect(control, &facts);
    DL_FOREACH_SAFE(control->awaiting, a, next)
    {
        if (await_reached(a, &facts))
            await_answer(a, &facts);
    }
}

void control_turn(struct control *control)
{
    const struct awaiting *a;
    struct await_facts facts;
    if (control == NULL || control->awaiting == NULL)
        return;
    await_collect(control, &facts);
    DL_FOREACH(control->awaiting, a)
    {
        if (await_reached(a, &facts)) {
            timer_fire(control->await); /* on the loop, since an answer can lead to further requests */
            return;
        }
    }
}

void control_on_await(struct control *control, await_facts_fn facts)
{
    control->await_facts = facts;
    control->await = timer_new(control->base, await_on_turn, control);
}

/* ---- the request ---------------------------------------------------------------------------------- */

/* Return a number of the request in its range; `otherwise` if it is missing. False: an error was sent. */
static bool await_number(struct connection *connection, json_t *request, const char *key, json_int_t least,
                         json_int_t most, uint64_t otherwise, uint64_t *out)
{
    json_t *value = json_object_get(request, key);
    *out = otherwise;
    if (value == NULL)
        return true;
    const json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < least || number > most) {
        connection_fail(connection, json_is_integer(value) ? PMIXFAB_ERR_RANGE : PMIXFAB_ERR_SYNTAX,
                        "await: %s is not a number from %lld to %lld", key, (long long)least,
                        (long long)most);
        return false;
    }
    *out = (uint64_t)number;
    return true;
}

/* False: an error was sent. */
static bool await_parse(struct connection *connection, json_t *request, struct awaiting *a)
{
    const char *until = json_string_value(json_object_get(request, "until"));
    struct await_facts facts;
    uint64_t seconds;
    if (!await_number(connection, request, "deadline", 1, AWAIT_SECONDS_MAX, AWAIT_SECONDS, &seconds))
        return false;
    a->seconds = (unsigned)seconds;
    if (until != NULL && strcmp(until, "idle") == 0) {
        a->until = AWAIT_IDLE;
        return true;
    }
    if (until != NULL && strcmp(until, "generation") == 0) {
        a->until = AWAIT_GENERATION;
        return await_number(connection, request, "generation", 0, INT64_MAX, 1, &a->least);
    }
    unsigned i = 0;
    while (until != NULL && i < AWAIT_EVENTS && strcmp(until, event_names[i]) != 0)
        i++;
    if (until == NULL || i == AWAIT_EVENTS) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX,
                        "await: until is not \"idle\", \"generation\" or a kind of event");
        return false;
    }
    a->until = AWAIT_EVENT;
    a->event = (enum await_event)i;
    await_collect(connection->control, &facts);
    if (!await_number(connection, request, "after", -1, INT64_MAX - 1, facts.counts[i], &a->least))
        return false;
    a->least++;
    return true;
}

static bool awaits_already(const struct connection *connection)
{
    const struct awaiting *a;
    DL_FOREACH(connection->control->awaiting, a)
    {
        if (a->pending.connection == connection)
            return true;
    }
    return false;
}

void control_op_await(struct connection *connection, json_t *request)
{
    struct control *control = connection->control;
    struct awaiting parsed = {.control = control};
    if (control->await == NULL) {
        connection_fail(connection, PMIXFAB_ERR_UNSUPPORTED,
                        "await: not available: there was no memory at the start");
        return;
    }
    if (awaits_already(connection)) {
        connection_fail(connection, PMIXFAB_ERR_BUSY, "await: another request of this connection is waiting");
        return;
    }
    if (!await_parse(connection, request, &parsed))
        return;
    struct awaiting *a = malloc(sizeof(*a));
    if (a == NULL || (parsed.deadline = timer_new(control->base, await_on_deadline, a)) == NULL) {
        connection_fail(connection, PMIXFAB_ERR_NOMEM, "await: out of memory");
        free(a);
        return;
    }
    *a = parsed;
    a->pending.gone = await_on_caller_gone;
    DL_APPEND(control->awaiting, a);
    connection_later(connection, &a->pending);
    timer_after(a->deadline, a->seconds * 1000ll);
}
