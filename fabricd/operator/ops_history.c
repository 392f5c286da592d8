/* ops_history.c - what changed so far: history and diff. */
#include "fabricd/jobs/history_json.h"
#include "fabricd/operator/ops.h"
#include "fabricd/publish/publish.h"
#include "fabricd/scheduler/scheduler.h"
#include "fabricd/store/tables/store_renames.h"
#include "fabricd/store/tables/store_tables.h"
#include "fabricd/util/log.h"
#include "topo/inventory/host_name.h"

#define DEFAULT_HISTORY 1000

static const struct ops_parts *history_parts(const struct connection *connection)
{
    return connection->control->owner;
}

static struct store *store_of(const struct connection *connection)
{
    return publisher_store(history_parts(connection)->publisher);
}

/* Those of generations from+1..to, without the `skip` newest. */
static json_t *changes_of(struct connection *connection, uint64_t from, uint64_t to, const char *what,
                          uint32_t limit, uint32_t skip)
{
    struct fab_err err = {""};
    json_t *changes = json_array();
    int rc = store_history(store_of(connection), from, to, what, limit, skip, change_json, changes, &err);
    if (rc == PMIXFAB_OK)
        return changes;
    json_decref(changes);
    connection_fail(connection, rc, "%s", err.text);
    return NULL;
}

static int name_json(const struct store_name *name, void *array)
{
    json_array_append_new(array,
                          json_pack("{s:s, s:I, s:o}", "name", name->name, "from", (json_int_t)name->from,
                                    "to", name->to == 0 ? json_null() : json_integer((json_int_t)name->to)));
    return 0;
}

/* The other names whose history is in it. */
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

/* Up to which generation changes are no more. False: told. */
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

/* A part of the history that was asked for. */
struct history_page {
    const char *what;
    uint64_t since, from, to, limit, skip;
};

/* False: that it cannot be is answered. */
static bool read_page(struct connection *connection, json_t *request, struct history_page *page)
{
    json_t *what = json_object_get(request, "what");
    struct fab_err err = {""};
    *page = (struct history_page){.what = json_string_value(what), .to = INT64_MAX, .limit = DEFAULT_HISTORY};
    if (what != NULL && !json_is_null(what) && !json_is_string(what)) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "control: what is not a string");
        return false;
    }
    if (bad_integer(connection, request, "limit", &page->limit) ||
        bad_integer(connection, request, "skip", &page->skip) ||
        bad_integer(connection, request, "to", &page->to) ||
        bad_integer(connection, request, "since", &page->since))
        return false;
    if (page->limit >= CHANGE_JSON_MAX || page->limit == 0)
        page->limit = CHANGE_JSON_MAX - 1; /* one more is looked for */
    if (page->skip > INT32_MAX || page->since > INT64_MAX / 1000000) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "control: skip or since is too large");
        return false;
    }
    int rc = page->since == 0 ? PMIXFAB_OK
                              : store_generation_before(store_of(connection), (int64_t)page->since * 1000000,
                                                        &page->from, &err);
    if (rc != PMIXFAB_OK)
        connection_fail(connection, rc, "%s", err.text);
    return rc == PMIXFAB_OK;
}

/* The answer says in which generation it was made: pages that follow ask up to that one, so that nothing
 * comes between them. */
void control_op_history(struct connection *connection, json_t *request)
{
    struct history_page page;
    struct scheduler_status status;
    uint64_t trimmed;
    if (!read_page(connection, request, &page) || !get_trimmed(connection, &trimmed))
        return;
    scheduler_status(history_parts(connection)->scheduler, &status);
    json_t *changes =
        changes_of(connection, page.from, page.to, page.what, (uint32_t)page.limit + 1, (uint32_t)page.skip);
    if (changes == NULL)
        return;
    const bool more = json_array_size(changes) > page.limit;
    if (more)
        json_array_remove(changes, 0);
    connection_send(connection,
                    json_pack("{s:b, s:I, s:I, s:b, s:o, s:o}", "ok", 1, "generation",
                              (json_int_t)status.generation, "trimmed", (json_int_t)trimmed, "more", more,
                              "changes", changes, "names", names_of(connection, page.what)));
}

static bool change_mentions_host(json_t *change, const char *host)
{
    json_t *subjects = json_object_get(change, "subjects");
    for (size_t i = 0; i < json_array_size(subjects); i++)
        if (fab_same_host(json_string_value(json_array_get(subjects, i)), host))
            return true;
    return false;
}

/* Of one host only: those that are about it, and is there such a host? */
static void answer_about(struct connection *connection, json_t *answer, const char *host)
{
    json_t *changes = json_object_get(answer, "changes"), *kept = json_array();
    for (size_t i = 0; i < json_array_size(changes); i++)
        if (change_mentions_host(json_array_get(changes, i), host))
            json_array_append(kept, json_array_get(changes, i));
    json_object_set_new(answer, "changes", kept);
    json_object_set_new(answer, "known",
                        json_boolean(publisher_has_host(history_parts(connection)->publisher, host)));
    connection_send(connection, answer);
}

void control_op_diff(struct connection *connection, json_t *request)
{
    json_t *about = json_object_get(request, "host");
    struct scheduler_status status;
    scheduler_status(history_parts(connection)->scheduler, &status);
    uint64_t to = status.generation, from, trimmed;
    if (about != NULL && !json_is_string(about)) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "control: host is not a string");
        return;
    }
    if (bad_integer(connection, request, "to", &to))
        return;
    from = to > 0 ? to - 1 : 0;
    if (bad_integer(connection, request, "from", &from))
        return;
    if (to > status.generation || from > to) {
        connection_fail(connection, PMIXFAB_ERR_NOTFOUND,
                        "diff: there is no way from generation %llu to %llu: the "
                        "newest is %llu",
                        (unsigned long long)from, (unsigned long long)to,
                        (unsigned long long)status.generation);
        return;
    }
    if (!get_trimmed(connection, &trimmed))
        return;
    if (from < trimmed && from < to) {
        connection_fail(connection, PMIXFAB_ERR_NOTFOUND,
                        "diff: from generation %llu: trimmed: older than generation %llu there is no history "
                        "any more (fabricd.conf(5), [history])",
                        (unsigned long long)from, (unsigned long long)trimmed + 1);
        return;
    }
    json_t *changes = changes_of(connection, from, to, NULL, 0, 0);
    if (changes == NULL)
        return;
    json_t *answer = json_pack("{s:b, s:I, s:I, s:o}", "ok", 1, "from", (json_int_t)from, "to",
                               (json_int_t)to, "changes", changes);
    if (about == NULL)
        connection_send(connection, answer);
    else
        answer_about(connection, answer, json_string_value(about));
}

/* What is published from here on is told, so nothing is between this answer and the first line. */
void control_op_watch(struct connection *connection, json_t *request)
{
    struct scheduler_status status;
    (void)request;
    scheduler_status(history_parts(connection)->scheduler, &status);
    connection->watches = true;
    connection_send(connection,
                    json_pack("{s:b, s:I}", "ok", 1, "generation", (json_int_t)status.generation));
}
