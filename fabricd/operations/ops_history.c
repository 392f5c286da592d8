/* ops_history.c - past changes: history and diff. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/engine/publish.h"
#include "fabricd/engine/scheduler.h"
#include "fabricd/jobs/history_json.h"
#include "fabricd/operations/ops.h"
#include "fabricd/store/store_tables.h"
#include "topo/model/host_name.h"

#define DEFAULT_HISTORY 1000

static struct store *store_of(const struct connection *connection)
{
    return publisher_store(ops_parts_of(connection)->publisher);
}

static int name_json(const struct store_name *name, void *array)
{
    json_array_append_new(array,
                          json_pack("{s:s, s:I, s:o}", "name", name->name, "from", (json_int_t)name->from,
                                    "to", name->to == 0 ? json_null() : json_integer((json_int_t)name->to)));
    return 0;
}

/* Return the other names of this object in the history. */
static json_t *names_of(struct connection *connection, const char *what)
{
    json_t *names = json_array();
    struct fab_err err = {""};
    if (what != NULL && store_names(store_of(connection), what, name_json, names, &err) != PMIXFAB_OK)
        log_error("history: %s", err.text);
    return names;
}

static bool bad_integer(struct connection *connection, json_t *request, const char *key, uint64_t *out)
{
    json_t *value = json_object_get(request, key);
    if (value == NULL || json_is_null(value))
        return false;
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "control: %s is not a number from 0", key);
        return true;
    }
    *out = (uint64_t)json_integer_value(value);
    return false;
}

/* Find the newest generation whose changes were trimmed. False: an error was sent. */
static bool get_trimmed(struct connection *connection, uint64_t *trimmed)
{
    struct fab_err err = {""};
    struct store_bounds bounds;
    int rc = store_bounds(store_of(connection), &bounds, &err);
    *trimmed = bounds.trimmed;
    if (rc != PMIXFAB_OK)
        connection_fail(connection, rc, "%s", err.text);
    return rc == PMIXFAB_OK;
}

/* ---- places in the history, as in `next` ---- */

static json_t *next_json(struct store_place at, uint64_t number)
{
    return json_sprintf("%llu.%u.%llu", (unsigned long long)at.generation, (unsigned)at.seq,
                        (unsigned long long)number);
}

static bool read_place(const char *text, struct store_place *at, uint64_t *number)
{
    uint64_t values[3];
    char *end = (char *)text;
    for (int i = 0; i < 3; i++) {
        values[i] = strtoull(i == 0 ? text : end + 1, &end, 10);
        if (*end != (i < 2 ? '.' : '\0') || values[i] > STORE_MAX_GENERATION)
            return false;
    }
    *at = (struct store_place){values[0], (uint32_t)values[1]};
    *number = values[2];
    return true;
}

static bool is_empty(const struct store_range *range)
{
    return range->first.generation > range->end.generation ||
           (range->first.generation == range->end.generation && range->first.seq >= range->end.seq);
}

/* ---- history ---- */

/* The requested part of the history, and how many changes are left to send. */
struct history_asked {
    const char *what, *next;
    struct store_range range;
    uint64_t left;
};

/* False: an error was sent. */
static bool read_asked(struct connection *connection, json_t *request, struct history_asked *asked)
{
    json_t *what = json_object_get(request, "what");
    struct fab_err err = {""};
    uint64_t to = STORE_MAX_GENERATION, since = 0, from = 0;
    *asked = (struct history_asked){.what = json_string_value(what), .left = DEFAULT_HISTORY};
    if (what != NULL && !json_is_null(what) && !json_is_string(what)) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "control: what is not a string");
        return false;
    }
    if (bad_integer(connection, request, "limit", &asked->left) ||
        bad_integer(connection, request, "to", &to) || bad_integer(connection, request, "since", &since) ||
        !connection_next(connection, request, &asked->next))
        return false;
    if (since > INT64_MAX / 1000000) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "control: since is too large");
        return false;
    }
    int rc = since == 0
                 ? PMIXFAB_OK
                 : store_generation_before(store_of(connection), (int64_t)since * 1000000, &from, &err);
    if (rc != PMIXFAB_OK) {
        connection_fail(connection, rc, "%s", err.text);
        return false;
    }
    asked->range = store_range(from, to);
    if (asked->left == 0 || asked->left > STORE_MAX_GENERATION)
        asked->left = STORE_MAX_GENERATION;
    if (asked->next == NULL || read_place(asked->next, &asked->range.end, &asked->left))
        return true;
    connection_bad_next(connection);
    return false;
}

/* Pages go from newer to older changes. One change more than requested is read, to find out whether there are
 * older ones. */
void control_op_history(struct connection *connection, json_t *request)
{
    struct history_asked asked;
    struct scheduler_status status;
    struct fab_err err = {""};
    uint64_t trimmed;
    if (!read_asked(connection, request, &asked) || !get_trimmed(connection, &trimmed))
        return;
    if (asked.range.first.generation <= trimmed) /* some changes of these generations may still exist */
        asked.range.first.generation = trimmed + 1;
    scheduler_status(ops_parts_of(connection)->scheduler, &status);
    const uint32_t n = asked.left < CONTROL_PAGE ? (uint32_t)asked.left : CONTROL_PAGE;
    json_t *changes = json_array();
    int rc = store_history_older(store_of(connection), &asked.range, asked.what, n + 1, change_json, changes,
                                 &err);
    if (rc != PMIXFAB_OK) {
        json_decref(changes);
        connection_fail(connection, rc, "%s", err.text);
        return;
    }
    const bool another = json_array_size(changes) > n;
    if (another) { /* the next page begins with it */
        json_array_remove(changes, 0);
        asked.range.end.seq++;
    }
    asked.left -= json_array_size(changes);
    const bool more = another && asked.left == 0;
    json_t *answer =
        json_pack("{s:b, s:I, s:I, s:b, s:o, s:o}", "ok", 1, "generation", (json_int_t)status.generation,
                  "trimmed", (json_int_t)trimmed, "more", more, "changes", changes, "names",
                  asked.next == NULL ? names_of(connection, asked.what) : json_array());
    if (!more && !is_empty(&asked.range))
        json_object_set_new(answer, "next", next_json(asked.range.end, asked.left));
    connection_send(connection, answer);
}

/* ---- diff ---- */

#define LOOKED_THROUGH (10 * CONTROL_PAGE) /* changes read at most, when those of one host are selected */

struct told {
    const char *host; /* NULL: all */
    json_t *changes;
};

static bool change_mentions_host(const struct store_change *change, const char *host)
{
    char name[FAB_HOST_MAX + 1];
    for (const char *at = change->subjects; *at != '\0';) {
        const size_t len = strcspn(at, "\n");
        snprintf(name, sizeof(name), "%.*s", (int)len, at);
        if (fab_same_host(name, host))
            return true;
        at += len + (at[len] != '\0');
    }
    return false;
}

static int tell_change(const struct store_change *change, void *cbdata)
{
    struct told *told = cbdata;
    if (told->host == NULL || change_mentions_host(change, told->host))
        change_json(change, told->changes);
    return json_array_size(told->changes) >= CONTROL_PAGE;
}

/* Check that the history covers this diff. False: an error was sent. */
static bool check_way(struct connection *connection, uint64_t from, uint64_t to, uint64_t newest)
{
    uint64_t trimmed;
    if (to > newest || from > to) {
        connection_fail(connection, PMIXFAB_ERR_NOTFOUND,
                        "diff: not possible from generation %llu to %llu: the newest is %llu",
                        (unsigned long long)from, (unsigned long long)to, (unsigned long long)newest);
        return false;
    }
    if (!get_trimmed(connection, &trimmed))
        return false;
    if (from >= trimmed || from == to)
        return true;
    connection_fail(connection, PMIXFAB_ERR_NOTFOUND,
                    "diff: from generation %llu: trimmed: the history begins with generation %llu "
                    "(fabricd.conf(5), [history])",
                    (unsigned long long)from, (unsigned long long)trimmed + 1);
    return false;
}

/* All pages go up to the same generation. */
void control_op_diff(struct connection *connection, json_t *request)
{
    json_t *about = json_object_get(request, "host");
    struct scheduler_status status;
    struct fab_err err = {""};
    const char *next;
    scheduler_status(ops_parts_of(connection)->scheduler, &status);
    uint64_t to = status.generation;
    struct store_place at;
    if (about != NULL && !json_is_string(about)) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "control: host is not a string");
        return;
    }
    if (bad_integer(connection, request, "to", &to) || !connection_next(connection, request, &next))
        return;
    if (next != NULL && !read_place(next, &at, &to)) {
        connection_bad_next(connection);
        return;
    }
    uint64_t from = to > 0 ? to - 1 : 0;
    if (bad_integer(connection, request, "from", &from) ||
        !check_way(connection, from, to, status.generation))
        return;
    struct store_range range = store_range(from, to);
    struct told told = {json_string_value(about), json_array()};
    if (next != NULL)
        range.first = at;
    int rc = store_history_newer(store_of(connection), &range, LOOKED_THROUGH, tell_change, &told, &err);
    if (rc != PMIXFAB_OK) {
        json_decref(told.changes);
        connection_fail(connection, rc, "%s", err.text);
        return;
    }
    json_t *answer = json_pack("{s:b, s:I, s:I, s:o}", "ok", 1, "from", (json_int_t)from, "to",
                               (json_int_t)to, "changes", told.changes);
    if (told.host != NULL && next == NULL)
        json_object_set_new(answer, "known",
                            json_boolean(publisher_has_host(ops_parts_of(connection)->publisher, told.host)));
    if (!is_empty(&range))
        json_object_set_new(answer, "next", next_json(range.first, to));
    connection_send(connection, answer);
}

/* From here on each publication is sent, so none is missed between this answer and the first line. */
void control_op_watch(struct connection *connection, json_t *request)
{
    struct scheduler_status status;
    (void)request;
    scheduler_status(ops_parts_of(connection)->scheduler, &status);
    connection->watches = true;
    connection_send(connection,
                    json_pack("{s:b, s:I}", "ok", 1, "generation", (json_int_t)status.generation));
}
