#include "fabricd/jobs/exports.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/control/connection.h"
#include "fabricd/jobs/hook.h"
#include "fabricd/jobs/slurm_rounds.h"
#include "fabricd/process/child.h"
#include "topo/base/backoff.h"
#include "topo/base/formats.h"

#define EXPORT_SAME 3 /* fabricctl's exit status with --if-changed: the file is up to date */
#define SECOND      1000000
#define IDENTITY    96  /* bytes of text */
#define RECORD_MAX  128 /* the identity, and when the command was run for it */

/* A configured file. */
struct export_file {
    char *name;       /* as configured */
    const char *pair; /* its line in [exports.files] */
    char *format;
    char *path, *record;            /* the file, and the record of its command */
    struct config_list to, command; /* the words that make the file; the command for changes, n 0: none */
    uint64_t wanted, tried, done;   /* generations; done: exported without error */
    int64_t ended;     /* end of the last attempt, microseconds of CLOCK_MONOTONIC; 0: none yet */
    unsigned failures; /* since the last success */
    int64_t compared;  /* time of the change that Slurm is compared with */
    int64_t exported, changed, told; /* last times of success, microseconds since 1970; 0: none yet */
    char identity[IDENTITY];         /* of the file that the command is run for */
    struct fab_err err;              /* of the last attempt, if it failed */
};

struct exports {
    struct event_base *base;
    const struct config *config;
    struct counts *counts;
    char *program; /* fabricctl */
    struct timer *timer;
    struct child *child;
    struct export_file *running; /* the file of the child */
    uint64_t ended;              /* attempts */
    char *hold_path;             /* file that records the hold */
    json_t *hold;                /* NULL: no hold */
    struct slurm_rounds *slurm;
    void (*changed)(void *cbdata);
    void *cbdata;
    unsigned n;
    struct export_file files[];
};

/* ---- the record of the command ------------------------------------------------------------------- */

/* Return the identity of the file: a new version has another inode. False: there is no file. */
static bool export_identity(const struct export_file *e, char text[static IDENTITY])
{
    struct stat st;
    if (stat(e->path, &st) != 0)
        return false;
    snprintf(text, IDENTITY, "%llu %lld.%09ld %lld\n", (unsigned long long)st.st_ino,
             (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (long long)st.st_size);
    return true;
}

/* Return whether the record shows that the command was run for this file; set the time. */
static bool export_is_told(struct export_file *e)
{
    void *was = NULL;
    size_t size = 0;
    if (!export_identity(e, e->identity))
        return true; /* the file was removed: there is nothing to report */
    const size_t len = strlen(e->identity);
    const bool same = file_read(e->record, RECORD_MAX, &was, &size) == 0 && size > len &&
                      ((const char *)was)[size - 1] == '\n' && memcmp(was, e->identity, len) == 0;
    if (same)
        e->told = strtoll((const char *)was + len, NULL, 10);
    free(was);
    return same;
}

static int export_record(struct export_file *e, struct fab_err *err)
{
    char beside[PATH_MAX], text[RECORD_MAX];
    const int64_t told = clock_now(CLOCK_REALTIME);
    const int size = snprintf(text, sizeof(text), "%s%lld\n", e->identity, (long long)told);
    const int len = snprintf(beside, sizeof(beside), "%s.new", e->record);
    const int rc =
        len < (int)sizeof(beside) ? file_replace(e->record, beside, text, (size_t)size) : ENAMETOOLONG;
    if (rc != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "export %s: %s: cannot be written: %s", e->name, e->record,
                        strerror(rc));
    e->told = told;
    return PMIXFAB_OK;
}

/* ---- when ------------------------------------------------------------------------------------------ */

/* Return the seconds from the last attempt to the next. The pause grows with each failure, except for a new
 * generation, which may succeed. */
static int64_t export_pause(const struct exports *x, const struct export_file *e)
{
    const int64_t pace = x->config->export_pace;
    const int64_t most = pace > EXPORTS_LONGEST_PAUSE ? pace : EXPORTS_LONGEST_PAUSE;
    const unsigned failures = e->wanted != e->tried ? 0 : e->failures;
    return backoff_pause(&(struct backoff){.first = pace, .most = most, .failed = 1 + failures});
}

/* Return the microseconds until the next attempt; 0 or less: it is due. */
static int64_t export_wait(const struct exports *x, const struct export_file *e)
{
    if (e->ended == 0)
        return 0;
    return e->ended + export_pause(x, e) * SECOND - clock_now(CLOCK_MONOTONIC);
}

static void exports_go_on(struct exports *x);

/* End an attempt. err NULL: success. */
static void export_end(struct exports *x, const struct fab_err *err)
{
    struct export_file *e = x->running;
    x->running = NULL;
    x->ended++;
    e->ended = clock_now(CLOCK_MONOTONIC);
    if (err == NULL) {
        if (e->compared != e->changed || e->done == 0)
            slurm_rounds_file(x->slurm, e->path, e->format);
        e->compared = e->changed;
        e->done = e->tried;
        e->failures = 0;
        e->err.text[0] = '\0';
    } else {
        e->failures++;
        e->err = *err;
        log_error("%s; next attempt in %lld s", err->text, (long long)export_pause(x, e));
    }
    exports_go_on(x);
}

/* ---- the words of fabricctl ---------------------------------------------------------------------------- */

static int append_words(struct config_list *list, const char *text)
{
    char *copy = strdup(text), *rest = NULL;
    int rc = copy == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    if (copy != NULL)
        for (char *word = strtok_r(copy, " \t", &rest); word != NULL && rc == PMIXFAB_OK;
             word = strtok_r(NULL, " \t", &rest))
            rc = config_append(list, word);
    free(copy);
    return rc;
}

/*
 * Add the settings that a format takes as options. They come before the options of the file, which may be
 * others.
 */
static int append_settings(struct export_file *e, const struct config *config)
{
    char shrink[40];
    int rc;
    if (!fab_is_format_of(FAB_LEAF_FORMATS, e->format, strlen(e->format)))
        return PMIXFAB_OK;
    snprintf(shrink, sizeof(shrink), "--max-shrink %u", config->export_max_shrink);
    rc = append_words(&e->to, shrink);
    if (rc == PMIXFAB_OK && config->export_above != NULL)
        rc = config_append(&e->to, "--above") ?: config_append(&e->to, config->export_above);
    if (rc == PMIXFAB_OK && config->slurm_topologies != NULL && strcmp(e->format, "slurm-yaml") == 0)
        rc = config_append(&e->to, "--topologies") ?: config_append(&e->to, config->slurm_topologies);
    return rc;
}

/* Parse "NAME=FORMAT OPTIONS" into the words of fabricctl export FORMAT OPTIONS -o FILE --if-changed. */
static int export_words(struct export_file *e, const struct config *config)
{
    const char *rest = e->pair + strcspn(e->pair, "=") + 1;
    config_clear(&e->to);
    return append_words(&e->to, "fabricctl export")
               ?: config_append(&e->to, e->format)
               ?: append_settings(e, config)
               ?: append_words(&e->to, rest + strcspn(rest, " \t"))
               ?: append_words(&e->to, "--if-changed -o")
               ?: config_append(&e->to, e->path);
}

/* ---- the children ------------------------------------------------------------------------------------ */

static int export_start(struct exports *x, const char *step, const char *program,
                        const struct config_list *words,
                        void (*done)(struct child_result *result, void *cbdata), struct fab_err *err)
{
    char what[60];
    snprintf(what, sizeof(what), "%s %.40s", step, x->running->name);
    const struct child_order order = {
        .what = what, .program = program, .deadline = x->config->export_deadline, .done = done, .cbdata = x};
    return hook_start_program(x->base, x->config, x->running->tried, words, order, &x->child, err);
}

static void export_on_told(struct child_result *result, void *arg)
{
    struct exports *x = arg;
    struct fab_err err = result->err;
    int rc = result->code;
    x->child = NULL;
    if (rc == PMIXFAB_OK)
        rc = export_record(x->running, &err);
    count(x->counts, rc == PMIXFAB_OK ? COUNT_EXPORT_COMMANDS : COUNT_EXPORT_COMMANDS_FAILED);
    export_end(x, rc == PMIXFAB_OK ? NULL : &err);
}

static void export_on_written(struct child_result *result, void *arg)
{
    struct exports *x = arg;
    struct export_file *e = x->running;
    struct fab_err err = {""};
    const bool same = result->exit_status == EXPORT_SAME;
    x->child = NULL;
    count(x->counts, same                         ? COUNT_EXPORTS_SAME
                     : result->code == PMIXFAB_OK ? COUNT_EXPORTS
                                                  : COUNT_EXPORTS_FAILED);
    if (result->code != PMIXFAB_OK && !same) {
        export_end(x, &result->err);
        return;
    }
    e->exported = clock_now(CLOCK_REALTIME);
    if (!same) {
        e->changed = e->exported;
        log_info("export %s: changed by generation %llu", e->name, (unsigned long long)e->tried);
    }
    if (e->command.n == 0 || export_is_told(e))
        export_end(x, NULL);
    else if (export_start(x, "command of export", e->command.items[0], &e->command, export_on_told, &err) !=
             PMIXFAB_OK) {
        count(x->counts, COUNT_EXPORT_COMMANDS_FAILED);
        export_end(x, &err);
    }
}

static void export_try(struct exports *x, struct export_file *e)
{
    struct fab_err err = {""};
    x->running = e;
    e->tried = e->wanted;
    const int rc = export_words(e, x->config);
    if (rc != PMIXFAB_OK)
        fab_fail(&err, rc, "export %s: %s", e->name, pmixfab_strerror(rc));
    else if (export_start(x, "export", x->program, &e->to, export_on_written, &err) == PMIXFAB_OK)
        return;
    count(x->counts, COUNT_EXPORTS_FAILED);
    export_end(x, &err);
}

/* Start the file that has waited longest, or set the timer for it. */
static void exports_go_on(struct exports *x)
{
    struct export_file *next = NULL;
    int64_t wait = 0;
    for (unsigned i = 0; i < x->n && x->running == NULL && x->hold == NULL; i++) {
        struct export_file *e = &x->files[i];
        if (e->done == e->wanted || (next != NULL && export_wait(x, e) >= wait))
            continue;
        next = e;
        wait = export_wait(x, e);
    }
    if (next != NULL && wait <= 0)
        export_try(x, next);
    else if (next != NULL)
        timer_after(x->timer, wait / 1000 + 1);
}

static void exports_on_time(void *arg)
{
    exports_go_on(arg);
}

void exports_tell(struct exports *exports, uint64_t generation)
{
    if (exports == NULL || generation == 0)
        return;
    for (unsigned i = 0; i < exports->n; i++)
        exports->files[i].wanted = generation;
    exports_go_on(exports);
}

/* ---- status ---------------------------------------------------------------------------------------- */

unsigned exports_failing(const struct exports *exports)
{
    unsigned n = 0;
    for (unsigned i = 0; exports != NULL && i < exports->n; i++)
        n += exports->files[i].failures > 0;
    return n;
}

bool exports_busy(const struct exports *exports)
{
    if (exports != NULL && slurm_rounds_busy(exports->slurm))
        return true;
    for (unsigned i = 0; exports != NULL && i < exports->n; i++) {
        const struct export_file *e = &exports->files[i];
        if (exports->running != e && exports->hold != NULL)
            continue;
        if (exports->running == e || (e->done != e->wanted && (e->failures == 0 || e->tried != e->wanted)))
            return true;
    }
    return false;
}

uint64_t exports_ended(const struct exports *exports)
{
    return exports == NULL ? 0 : exports->ended;
}

static json_t *export_json(const struct exports *x, const struct export_file *e)
{
    const bool waits = e->failures > 0 && x->running != e;
    const int64_t wait = export_wait(x, e);
    return json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:b, s:o, s:i, s:o, s:o}", "name", e->name, "file",
                     e->path, "format", e->format, "generation", (json_int_t)e->done, "exported",
                     control_time(e->exported), "changed", control_time(e->changed), "command",
                     e->command.n > 0, "told", control_time(e->told), "failures", (int)e->failures, "why",
                     e->failures > 0 ? json_string(e->err.text) : json_null(), "retry",
                     control_time(waits ? clock_now(CLOCK_REALTIME) + (wait > 0 ? wait : 0) : 0));
}

json_t *exports_json(const struct exports *exports)
{
    json_t *list = json_array();
    for (unsigned i = 0; exports != NULL && i < exports->n; i++)
        json_array_append_new(list, export_json(exports, &exports->files[i]));
    return list;
}

/* ---- the hold --------------------------------------------------------------------------------------- */

#define HOLD_MAX 4096

static void exports_read_hold(struct exports *x)
{
    void *text = NULL;
    size_t size = 0;
    if (file_read(x->hold_path, HOLD_MAX, &text, &size) == 0)
        x->hold = json_loadb(text, size, 0, NULL) ?: json_object();
    free(text);
}

int exports_hold(struct exports *x, const char *user, const char *reason, struct fab_err *err)
{
    char beside[PATH_MAX];
    if (x == NULL || x->n == 0)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "hold: there is no file in [exports.files]");
    json_t *hold = json_pack("{s:o, s:s, s:s}", "since", control_time(clock_now(CLOCK_REALTIME)), "user",
                             user, "reason", reason);
    char *text = hold != NULL ? json_dumps(hold, JSON_INDENT(1)) : NULL;
    int rc = text == NULL ? ENOMEM : 0;
    if (rc == 0 && snprintf(beside, sizeof(beside), "%s.new", x->hold_path) >= (int)sizeof(beside))
        rc = ENAMETOOLONG;
    rc = rc ?: file_replace(x->hold_path, beside, text, strlen(text));
    free(text);
    if (rc != 0) {
        json_decref(hold);
        return fab_fail(err, PMIXFAB_ERR_IO, "hold: %s: cannot be written: %s", x->hold_path, strerror(rc));
    }
    json_decref(x->hold);
    x->hold = hold;
    slurm_rounds_hold(x->slurm, true);
    x->changed(x->cbdata);
    return PMIXFAB_OK;
}

int exports_release(struct exports *x, struct fab_err *err)
{
    if (x == NULL || x->hold == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "hold: the exports are not held");
    if (unlink(x->hold_path) != 0 && errno != ENOENT)
        return fab_fail(err, PMIXFAB_ERR_IO, "hold: %s: cannot be removed: %s", x->hold_path,
                        strerror(errno));
    json_decref(x->hold);
    x->hold = NULL;
    slurm_rounds_hold(x->slurm, false);
    exports_go_on(x);
    x->changed(x->cbdata);
    return PMIXFAB_OK;
}

const json_t *exports_held(const struct exports *exports)
{
    return exports != NULL ? exports->hold : NULL;
}

const struct slurm_rounds *exports_slurm(const struct exports *exports)
{
    return exports != NULL ? exports->slurm : NULL;
}

void exports_reload(struct exports *exports)
{
    if (exports != NULL)
        slurm_rounds_reload(exports->slurm);
}

/* ---- start and end --------------------------------------------------------------------------------- */

/* fabricctl is installed beside this program, or in the folder bin beside its sbin. */
static char *find_fabricctl(void)
{
    char own[PATH_MAX] = "", *path = NULL;
    if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0 || strrchr(own, '/') == NULL)
        return NULL;
    *strrchr(own, '/') = '\0';
    if (asprintf(&path, "%s/fabricctl", own) < 0)
        return NULL;
    if (access(path, X_OK) == 0)
        return path;
    free(path);
    return asprintf(&path, "%s/../bin/fabricctl", own) < 0 ? NULL : path;
}

static int export_init(struct export_file *e, const struct config *config, const char *pair)
{
    const char *const folder = config->export_folder;
    const size_t len = strcspn(pair, "=");
    e->pair = pair;
    e->name = strndup(pair, len);
    e->format = strndup(pair + len + 1, strcspn(pair + len + 1, " \t"));
    if (e->name == NULL || e->format == NULL)
        return PMIXFAB_ERR_NOMEM;
    const bool whole = e->name[0] == '/';
    if (asprintf(&e->path, "%s%s%s", whole ? "" : folder, whole ? "" : "/", e->name) < 0 ||
        asprintf(&e->record, "%s.told", e->path) < 0)
        return PMIXFAB_ERR_NOMEM;
    const char *command = config_pair(&config->export_commands, e->name);
    if (command == NULL)
        return PMIXFAB_OK;
    const int rc = append_words(&e->command, command);
    export_is_told(e); /* sets the time for `status` */
    return rc;
}

int exports_new(struct event_base *base, const struct config *config, struct counts *counts,
                void (*changed)(void *cbdata), void *cbdata, struct exports **out, struct fab_err *err)
{
    const unsigned n = config->exports.n;
    struct exports *x = *out = calloc(1, sizeof(*x) + n * sizeof(x->files[0]));
    if (x == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    *x = (struct exports){
        .base = base, .config = config, .counts = counts, .n = n, .changed = changed, .cbdata = cbdata};
    if (asprintf(&x->hold_path, "%s/exports.hold", config->export_folder) < 0)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    exports_read_hold(x);
    if (n == 0)
        return PMIXFAB_OK;
    x->program = find_fabricctl();
    x->timer = timer_new(base, exports_on_time, x);
    int rc = x->program == NULL || x->timer == NULL
                 ? PMIXFAB_ERR_NOMEM
                 : slurm_rounds_new(base, config, x->program, changed, cbdata, &x->slurm, err);
    slurm_rounds_hold(x->slurm, x->hold != NULL);
    for (unsigned i = 0; i < n && rc == PMIXFAB_OK; i++)
        rc = export_init(&x->files[i], config, config->exports.items[i]);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "exports: %s", pmixfab_strerror(rc));
    if (mkdir(config->export_folder, 0755) != 0 && errno != EEXIST) /* the exports will fail and report it */
        log_error("exports: folder %s: cannot be created: %s", config->export_folder, strerror(errno));
    return PMIXFAB_OK;
}

void exports_free(struct exports *exports)
{
    if (exports == NULL)
        return;
    child_cancel(exports->child);
    slurm_rounds_free(exports->slurm);
    json_decref(exports->hold);
    free(exports->hold_path);
    timer_free(exports->timer);
    for (unsigned i = 0; i < exports->n; i++) {
        struct export_file *e = &exports->files[i];
        free(e->name);
        free(e->format);
        free(e->path);
        free(e->record);
        config_clear(&e->to);
        config_clear(&e->command);
    }
    free(exports->program);
    free(exports);
}
