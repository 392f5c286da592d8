#include "fabricd/jobs/hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/control/connection.h"
#include "fabricd/jobs/history_json.h"
#include "fabricd/process/child.h"
#include "fabricd/store/store_tables.h"

/* A waiting generation. Its changes are read in its turn: the first generation of a large fabric has
 * megabytes of them. */
struct waiting {
    struct waiting *prev, *next; /* utlist */
    uint64_t generation;
    int64_t published;
    bool changed;
    json_t *planes, *findings;
};

struct hooks {
    struct event_base *base;
    const struct config *config;
    struct counts *counts;
    struct store *store;
    struct waiting *queue;
    unsigned n;
    struct child *child;
    char *input; /* of the running hook */
    uint64_t generation;
};

static void waiting_free(struct waiting *waiting)
{
    if (waiting != NULL) {
        json_decref(waiting->planes);
        json_decref(waiting->findings);
    }
    free(waiting);
}

static json_t *planes_json(const struct event_plane *planes, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list != NULL && i < n; i++)
        json_array_append_new(
            list, json_pack("{s:I, s:s}", "index", (json_int_t)planes[i].index, "name", planes[i].name));
    return list;
}

/* Return the input as JSON: the changes in the format of `diff`, the planes and the time, the findings that
 * came and went. NULL: logged. */
static char *make_input(const struct hooks *hooks, const struct waiting *waiting)
{
    struct fab_err err = {"out of memory"};
    char *text = NULL;
    json_t *changes = json_array();
    const uint64_t generation = waiting->generation, from = generation - waiting->changed;
    int rc = waiting->changed
                 ? store_history(hooks->store, from, generation, NULL, 0, change_json, changes, &err)
                 : PMIXFAB_OK;
    json_t *news = rc != PMIXFAB_OK
                       ? NULL
                       : json_pack("{s:I, s:o, s:O, s:I, s:I, s:O, s:O}", "generation",
                                   (json_int_t)generation, "published", control_time(waiting->published),
                                   "planes", waiting->planes, "from", (json_int_t)from, "to",
                                   (json_int_t)generation, "changes", changes, "findings", waiting->findings);
    if (news != NULL)
        text = json_dumps(news, JSON_COMPACT);
    if (text == NULL)
        log_error("hook: not run for generation %llu: %s", (unsigned long long)generation, err.text);
    json_decref(news);
    json_decref(changes);
    return text;
}

static void hook_start_next(struct hooks *hooks);

static void hook_on_ended(struct child_result *result, void *arg)
{
    struct hooks *hooks = arg;
    hooks->child = NULL;
    free(hooks->input);
    hooks->input = NULL;
    if (result->code != PMIXFAB_OK)
        log_error("%s", result->err.text);
    else
        log_debug("hook: generation %llu: %.1f ms", (unsigned long long)hooks->generation,
                  result->milliseconds);
    count(hooks->counts, result->code == PMIXFAB_OK ? COUNT_HOOKS : COUNT_HOOKS_FAILED);
    hook_start_next(hooks);
}

int hook_start_program(struct event_base *base, const struct config *config, uint64_t generation,
                       const struct config_list *words, struct child_order order, struct child **out,
                       struct fab_err *err)
{
    char text[4096], *argv[CONFIG_MAX_LIST + 1] = {NULL};
    struct config_list env = {.n = 0};
    memcpy(argv, words->items, words->n * sizeof(argv[0]));
    order.argv = argv;
    order.env = &env;
    snprintf(text, sizeof(text), "FABRICD_RUNDIR=%s", config->rundir);
    int rc = config_append(&env, text);
    snprintf(text, sizeof(text), "FABRICD_GENERATION=%llu", (unsigned long long)generation);
    rc = rc ?: config_append(&env, text);
    rc = rc == PMIXFAB_OK ? child_start(base, &order, out, err)
                          : fab_fail(err, rc, "%s: out of memory", order.what);
    config_clear(&env);
    return rc;
}

static int hook_start(struct hooks *hooks, struct fab_err *err)
{
    char what[60];
    snprintf(what, sizeof(what), "hook for generation %llu", (unsigned long long)hooks->generation);
    const struct child_order order = {.what = what,
                                      .program = hooks->config->hook.items[0],
                                      .input = hooks->input,
                                      .input_size = strlen(hooks->input),
                                      .deadline = hooks->config->hook_deadline,
                                      .done = hook_on_ended,
                                      .cbdata = hooks};
    return hook_start_program(hooks->base, hooks->config, hooks->generation, &hooks->config->hook, order,
                              &hooks->child, err);
}

/* Start the next hook, if none runs; skip those that cannot be started. */
static void hook_start_next(struct hooks *hooks)
{
    while (hooks->child == NULL && hooks->queue != NULL) {
        struct waiting *waiting = hooks->queue;
        struct fab_err err = {""};
        DL_DELETE(hooks->queue, waiting);
        hooks->n--;
        hooks->generation = waiting->generation;
        hooks->input = make_input(hooks, waiting);
        waiting_free(waiting);
        if (hooks->input != NULL && hook_start(hooks, &err) == PMIXFAB_OK)
            return;
        if (err.text[0] != '\0')
            log_error("%s", err.text);
        count(hooks->counts, COUNT_HOOKS_FAILED);
        free(hooks->input);
        hooks->input = NULL;
    }
}

bool hooks_wanted(const struct hooks *hooks)
{
    return hooks != NULL && hooks->config->hook.n > 0;
}

bool hooks_busy(const struct hooks *hooks)
{
    return hooks != NULL && hooks->child != NULL; /* a hook runs as long as some wait */
}

static struct waiting *waiting_new(const struct hook_news *news)
{
    struct waiting *waiting = calloc(1, sizeof(*waiting));
    if (waiting == NULL)
        return NULL;
    waiting->generation = news->generation;
    waiting->published = news->published;
    waiting->changed = news->changed;
    waiting->planes = planes_json(news->planes, news->n);
    waiting->findings = news->findings != NULL ? json_incref(news->findings) : json_array();
    if (waiting->planes != NULL && waiting->findings != NULL)
        return waiting;
    waiting_free(waiting);
    return NULL;
}

static void hooks_append(struct hooks *hooks, const struct hook_news *news)
{
    struct waiting *waiting = waiting_new(news);
    if (waiting == NULL) {
        log_error("hook: not run for generation %llu: out of memory", (unsigned long long)news->generation);
        return;
    }
    if (hooks->n == HOOK_WAITING) {
        struct waiting *oldest = hooks->queue;
        log_error("hook: not run for generation %llu: %d are waiting already, since the hook is slower than "
                  "the fabric changes",
                  (unsigned long long)oldest->generation, HOOK_WAITING);
        count(hooks->counts, COUNT_HOOKS_DROPPED);
        DL_DELETE(hooks->queue, oldest);
        waiting_free(oldest);
        hooks->n--;
    }
    DL_APPEND(hooks->queue, waiting);
    hooks->n++;
    hook_start_next(hooks);
}

void hooks_tell(struct hooks *hooks, const struct hook_news *news)
{
    if (hooks_wanted(hooks) && (news->changed || news->findings != NULL))
        hooks_append(hooks, news);
    json_decref(news->findings);
}

int hooks_new(struct event_base *base, const struct config *config, struct counts *counts,
              struct store *store, struct hooks **out, struct fab_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    **out = (struct hooks){.base = base, .config = config, .counts = counts, .store = store};
    return PMIXFAB_OK;
}

void hooks_free(struct hooks *hooks)
{
    struct waiting *waiting, *after;
    if (hooks == NULL)
        return;
    child_cancel(hooks->child);
    DL_FOREACH_SAFE(hooks->queue, waiting, after)
    {
        DL_DELETE(hooks->queue, waiting);
        waiting_free(waiting);
    }
    free(hooks->input);
    free(hooks);
}
