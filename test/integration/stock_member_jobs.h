/*
 * stock_member_jobs.h - what a stock_member does about other jobs: it starts them, hears of them, reads and
 * writes their streams, ends them. It stands in that program, after what all its actions use.
 */
#ifndef TEST_STOCK_MEMBER_JOBS_H
#define TEST_STOCK_MEMBER_JOBS_H

#include <pmix_tool.h>

#include "test/integration/stock_member.h"
#include "test/integration/stock_status.h"

#define MOST_HEARD 16384

/* ---- spawn -------------------------------------------------------------------------------------- */

/* A directive, of which a text tells: "out", "out-" (false), "in", "stdin:RANK", "for:RANK" (of the job that
 * was spawned before), "tag", "cwd:FOLDER", "set:NAME:VALUE" and likewise add, prepend, append; "unset:NAME",
 * "odd" and "odd!" (required) for one that nobody knows. */
static inline void directive_of(char *text, pmix_info_t *info)
{
    static const struct {
        const char *name, *key;
    } keys[] = {{"out", PMIX_FWD_STDOUT},
                {"err", PMIX_FWD_STDERR},
                {"in", PMIX_FWD_STDIN},
                {"tag", PMIX_IOF_TAG_OUTPUT},
                {"notify", PMIX_NOTIFY_COMPLETION},
                {"recoverable", PMIX_JOB_RECOVERABLE},
                {"odd", "stock.odd"},
                {"set", PMIX_SET_ENVAR},
                {"add", PMIX_ADD_ENVAR},
                {"prepend", PMIX_PREPEND_ENVAR},
                {"append", PMIX_APPEND_ENVAR},
                {"unset", PMIX_UNSET_ENVAR},
                {"cwd", PMIX_WDIR},
                {"stdin", PMIX_STDIN_TGT}};
    char *rest = text, *name = strsep(&rest, ":"), *variable = rest == NULL ? NULL : strsep(&rest, ":");
    const bool no = name[strlen(name) - 1] == '-', required = name[strlen(name) - 1] == '!', yes = !no;
    const char *key = "";
    if (no || required)
        name[strlen(name) - 1] = '\0';
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(keys[i].name, name) == 0)
            key = keys[i].key;
    if (strcmp(name, "for") == 0) {
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, child, rank_of(variable));
        PMIX_INFO_LOAD(info, PMIX_PARENT_ID, &proc, PMIX_PROC);
    } else if (strcmp(name, "stdin") == 0) {
        pmix_rank_t rank = rank_of(variable);
        PMIX_INFO_LOAD(info, key, &rank, PMIX_PROC_RANK);
    } else if (rest != NULL) {
        pmix_envar_t envar;
        envar.envar = variable;
        envar.value = rest;
        envar.separator = '/';
        PMIX_INFO_LOAD(info, key, &envar, PMIX_ENVAR);
    } else if (variable != NULL) {
        PMIX_INFO_LOAD(info, key, variable, PMIX_STRING);
    } else {
        PMIX_INFO_LOAD(info, key, &yes, PMIX_BOOL);
    }
    if (required)
        PMIX_INFO_REQUIRED(info);
}

/* "DIRECTIVE+DIRECTIVE...", or "-" for none. */
static inline size_t directives_of(char *text, pmix_info_t *info)
{
    size_t n = 0;
    if (strcmp(text, "-") == 0)
        return 0;
    for (char *rest = text, *one; (one = strsep(&rest, "+")) != NULL && n < MOST_WORDS;)
        directive_of(one, &info[n++]);
    return n;
}

/* N,DIRECTIVES,PROGRAM,ARGUMENTS... up to a word "/" or the end; "^" in an argument is a comma. */
static inline int app_of(struct action *a, int at, pmix_app_t *app)
{
    pmix_status_t rc;
    PMIX_APP_CONSTRUCT(app);
    app->maxprocs = atoi(word(a, at, "1"));
    app->info = calloc(MOST_WORDS, sizeof(*app->info));
    app->ninfo = directives_of(a->words[at + 1], app->info);
    if (app->ninfo == 0) { /* the library looks for the end of an array whose length it is not told */
        free(app->info);
        app->info = NULL;
    }
    app->cmd = a->words[at + 2];
    for (at += 2; at < a->n && strcmp(a->words[at], "/") != 0; at++) {
        for (char *c = a->words[at]; *c != '\0'; c++)
            if (*c == '^')
                *c = ',';
        PMIX_ARGV_APPEND(rc, app->argv, a->words[at]);
        if (rc != PMIX_SUCCESS)
            abort();
    }
    return at + 1;
}

static inline void on_spawned(pmix_status_t status, char nspace[], void *cbdata)
{
    (void)cbdata;
    if (status == PMIX_SUCCESS)
        PMIX_LOAD_NSPACE(child, nspace);
    op_end(status);
}

/* spawn=DIRECTIVES,APPLICATION[,/,APPLICATION...]; what it says is the new namespace */
static inline pmix_status_t do_spawn(struct action *a)
{
    pmix_info_t info[MOST_WORDS];
    pmix_app_t apps[MOST_WORDS];
    size_t n = directives_of(a->words[0], info), n_apps = 0;
    for (int at = 1; at + 2 < a->n;)
        at = app_of(a, at, &apps[n_apps++]);
    pmix_status_t rc = a->nb ? op_wait(PMIx_Spawn_nb(info, n, apps, n_apps, on_spawned, NULL))
                             : PMIx_Spawn(info, n, apps, n_apps, child);
    if (rc == PMIX_SUCCESS)
        snprintf(a->said, sizeof(a->said), " %s", child);
    return rc;
}

/* ---- events ------------------------------------------------------------------------------------- */

static struct {
    pmix_status_t code, status;
    pmix_proc_t affected;
    int exit_code;
} heard[MOST_HEARD];
static size_t n_heard;

static inline void on_heard(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                            size_t n, pmix_info_t *results, size_t n_results,
                            pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)id, (void)results, (void)n_results;
    pthread_mutex_lock(&lock);
    if (n_heard < MOST_HEARD) {
        heard[n_heard].code = status;
        if (source != NULL)
            heard[n_heard].affected = *source;
        for (size_t i = 0; i < n; i++) {
            if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC))
                heard[n_heard].affected = *info[i].value.data.proc;
            else if (PMIX_CHECK_KEY(&info[i], PMIX_JOB_TERM_STATUS))
                heard[n_heard].status = info[i].value.data.status;
            else if (PMIX_CHECK_KEY(&info[i], PMIX_EXIT_CODE))
                heard[n_heard].exit_code = info[i].value.data.integer;
        }
        n_heard++;
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

/* Listen to what comes from now on. */
static inline pmix_status_t do_listen(struct action *a)
{
    pmix_status_t codes[] = {PMIX_EVENT_JOB_END,           PMIX_ERR_PROC_ABORTED_BY_SIG,
                             PMIX_ERR_EXIT_NONZERO_TERM,   PMIX_ERR_PROC_TERM_WO_SYNC,
                             PMIX_ERR_PROC_KILLED_BY_CMD,  PMIX_ERR_PROC_REQUESTED_ABORT,
                             PMIX_MONITOR_HEARTBEAT_ALERT, PMIX_MONITOR_FILE_ALERT};
    (void)a;
    pmix_status_t rc =
        PMIx_Register_event_handler(codes, sizeof(codes) / sizeof(codes[0]), NULL, 0, on_heard, NULL, NULL);
    return rc >= 0 ? PMIX_SUCCESS : rc;
}

/* hear=CODE,NSPACE: until such an event of that job has come; rank, status and exit code */
static inline pmix_status_t do_hear(struct action *a)
{
    pmix_proc_t of;
    size_t i = 0;
    name_of(word(a, 1, "child"), 0, &of);
    pthread_mutex_lock(&lock);
    while (i == n_heard || heard[i].code != atoi(a->words[0]) ||
           !PMIX_CHECK_NSPACE(heard[i].affected.nspace, of.nspace)) {
        if (i < n_heard)
            i++;
        else
            pthread_cond_wait(&changed, &lock);
    }
    snprintf(a->said, sizeof(a->said), " %d %s %d", (int)heard[i].affected.rank,
             stock_status(heard[i].status), heard[i].exit_code);
    pthread_mutex_unlock(&lock);
    return PMIX_SUCCESS;
}

/* spawns=TIMES,APPLICATION: one after the other, each to its end */
static inline pmix_status_t do_spawns(struct action *a)
{
    static char end[16];
    snprintf(end, sizeof(end), "%d", PMIX_EVENT_JOB_END);
    struct action wait = {.words = {end, "child"}, .n = 2};
    pmix_app_t app;
    app_of(a, 1, &app);
    pmix_status_t rc = PMIX_SUCCESS;
    for (int i = 0; rc == PMIX_SUCCESS && i < atoi(a->words[0]); i++) {
        rc = PMIx_Spawn(NULL, 0, &app, 1, child);
        if (rc == PMIX_SUCCESS)
            rc = do_hear(&wait);
    }
    return rc;
}

/* ---- streams ------------------------------------------------------------------------------------ */

/* Each piece that comes is a line of its own: "RANK<CHANNEL> TEXT". */
static inline void on_output(size_t id, pmix_iof_channel_t channel, pmix_proc_t *source,
                             pmix_byte_object_t *bytes, pmix_info_t info[], size_t n)
{
    (void)id, (void)info, (void)n;
    printf("%u<%s> %.*s", source->rank, channel == PMIX_FWD_STDERR_CHANNEL ? "err" : "out", (int)bytes->size,
           bytes->bytes);
    fflush(stdout);
}

/* pull=PROCS[,out|err|all] */
static inline pmix_status_t do_pull(struct action *a)
{
    pmix_proc_t procs[MOST_WORDS];
    const char *which = word(a, 1, "all");
    const size_t n = procs_of(a->words[0], procs);
    const pmix_iof_channel_t channels = strcmp(which, "out") == 0 ? PMIX_FWD_STDOUT_CHANNEL
                                        : strcmp(which, "err") == 0
                                            ? PMIX_FWD_STDERR_CHANNEL
                                            : PMIX_FWD_STDOUT_CHANNEL | PMIX_FWD_STDERR_CHANNEL;
    pmix_status_t rc = PMIx_IOF_pull(procs, n, NULL, 0, channels, on_output, NULL, NULL);
    return rc >= 0 ? PMIX_SUCCESS : rc;
}

/* push=PROCS[,TEXT]: a line, or the end. Without a callback the library reads what it has freed. */
static inline pmix_status_t do_push(struct action *a)
{
    pmix_proc_t procs[MOST_WORDS];
    const size_t n = procs_of(a->words[0], procs);
    char line[1024] = "";
    if (a->n > 1)
        snprintf(line, sizeof(line), "%s\n", a->words[1]);
    pmix_byte_object_t bytes;
    bytes.bytes = line;
    bytes.size = strlen(line);
    return op_wait(PMIx_IOF_push(procs, n, &bytes, NULL, 0, on_op, NULL));
}

/* ---- control and monitoring --------------------------------------------------------------------- */

static inline void on_infos(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                            pmix_release_cbfunc_t release_fn, void *release_cbdata)
{
    (void)info, (void)n, (void)cbdata;
    if (release_fn != NULL)
        release_fn(release_cbdata);
    op_end(status);
}

/* control=PROCS,KEY[:NUMBER or TEXT][!][,...]: KEY is what follows "pmix.jctrl.", or all of it; "-" names no
 * process */
static inline pmix_status_t do_control(struct action *a)
{
    pmix_proc_t procs[MOST_WORDS];
    pmix_info_t info[MOST_WORDS], *results;
    size_t n = strcmp(a->words[0], "-") == 0 ? 0 : procs_of(a->words[0], procs), n_results = 0;
    const bool yes = true;
    for (int i = 1; i < a->n; i++) {
        char *value = a->words[i], *name = strsep(&value, ":"), key[PMIX_MAX_KEYLEN];
        const int number = value == NULL ? 0 : atoi(value);
        snprintf(key, sizeof(key), "%s%s", strncmp(name, "pmix.", 5) == 0 ? "" : "pmix.jctrl.", name);
        if (value == NULL)
            PMIX_INFO_LOAD(&info[i - 1], key, &yes, PMIX_BOOL);
        else if (number == 0 && value[0] != '0')
            PMIX_INFO_LOAD(&info[i - 1], key, value, PMIX_STRING);
        else
            PMIX_INFO_LOAD(&info[i - 1], key, &number, PMIX_INT);
    }
    pmix_proc_t *targets = n == 0 ? NULL : procs;
    if (a->nb)
        return op_wait(PMIx_Job_control_nb(targets, n, info, (size_t)a->n - 1, on_infos, NULL));
    return PMIx_Job_control(targets, n, info, (size_t)a->n - 1, &results, &n_results);
}

/* monitor=beat or monitor=FILE: with an alert after a second in which nothing came of it */
static inline pmix_status_t do_monitor(struct action *a)
{
    const bool beat = strcmp(a->words[0], "beat") == 0, yes = true;
    const uint32_t one = 1;
    pmix_info_t monitor, info[3], *results = NULL;
    size_t n = 0;
    PMIX_INFO_LOAD(&info[0], beat ? PMIX_MONITOR_HEARTBEAT_TIME : PMIX_MONITOR_FILE_CHECK_TIME, &one,
                   PMIX_UINT32);
    PMIX_INFO_LOAD(&info[1], beat ? PMIX_MONITOR_HEARTBEAT_DROPS : PMIX_MONITOR_FILE_DROPS, &one,
                   PMIX_UINT32);
    PMIX_INFO_LOAD(&info[2], PMIX_MONITOR_FILE_SIZE, &yes, PMIX_BOOL);
    if (beat)
        PMIX_INFO_LOAD(&monitor, PMIX_MONITOR_HEARTBEAT, &yes, PMIX_BOOL);
    else
        PMIX_INFO_LOAD(&monitor, PMIX_MONITOR_FILE, a->words[0], PMIX_STRING);
    if (a->nb)
        return op_wait(PMIx_Process_monitor_nb(&monitor, PMIX_ERR_TIMEOUT, info, 3, on_infos, NULL));
    return PMIx_Process_monitor(&monitor, PMIX_ERR_TIMEOUT, info, 3, &results, &n);
}

/* ---- what a host may refuse --------------------------------------------------------------------- */

static inline pmix_status_t do_allocate(struct action *a)
{
    const uint64_t nodes = 1;
    pmix_info_t info, *results = NULL;
    size_t n = 0;
    (void)a;
    PMIX_INFO_LOAD(&info, PMIX_ALLOC_NUM_NODES, &nodes, PMIX_UINT64);
    return PMIx_Allocation_request(PMIX_ALLOC_NEW, &info, 1, &results, &n);
}

static inline pmix_status_t do_group(struct action *a)
{
    pmix_info_t *results = NULL;
    size_t n = 0;
    return PMIx_Group_construct(a->words[0], &self, 1, NULL, 0, &results, &n);
}

static inline pmix_status_t do_credential(struct action *a)
{
    pmix_byte_object_t credential;
    (void)a;
    return PMIx_Get_credential(NULL, 0, &credential);
}

#endif
