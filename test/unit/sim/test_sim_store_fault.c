/*
 * The store on the disk of test/sim: each call fails, alone and with all behind it. The step that meets the
 * fault says so, has changed nothing, and succeeds when the disk is good again.
 */
#include <errno.h>

#include "test/unit/sim/store_site.h"

/* A site did some steps and was killed, or closed its store before. Then it does the others with faults. */
struct scene {
    const char *name;
    step_fn before[8];
    bool opened; /* without faults */
    step_fn steps[4];
};

enum kind { BROKEN, SHORT, BROKEN_FROM, FULL_FROM, KINDS };

static const char *const kind_names[KINDS] = {[BROKEN] = "a call that fails",
                                              [SHORT] = "a short write",
                                              [BROKEN_FROM] = "a device that fails from a call on",
                                              [FULL_FROM] = "a disk that is full from a call on"};

#define CALLS_MAX 1000

struct run {
    const struct scene *scene;
    struct site site;
    enum kind kind;
    uint64_t from, fault_at; /* the call with the fault, counted from that one; 0: none */
    bool armed, met, read;   /* read: the last call that failed */
    struct disk_call *noted; /* not NULL: the calls of a run without faults */
    size_t n_noted;
};

static void must_be_right(const struct run *run, const char *when, const char *wrong)
{
    if (wrong != NULL)
        fail_msg("%s, %s, %llu: %s: %s", run->scene->name, kind_names[run->kind],
                 (unsigned long long)run->fault_at, when, wrong);
}

/* A full disk can do all that takes no room. What fails for longer begins at a call that changes something.
 */
static bool is_met(const struct run *run, const struct disk_call *call)
{
    switch (run->kind) {
    case BROKEN:
        return call->number == run->fault_at;
    case SHORT:
        return call->number == run->fault_at && (call->op == DISK_WRITE || call->op == DISK_OPEN);
    case BROKEN_FROM:
        return call->number > run->fault_at || (call->number == run->fault_at && call->op != DISK_READ);
    default:
        return call->number >= run->fault_at && call->grows;
    }
}

static int fail_at_call(void *arg, const struct disk_call *call)
{
    static const int codes[] = {
        [DISK_OPEN] = SQLITE_CANTOPEN,     [DISK_READ] = SQLITE_IOERR_READ,
        [DISK_WRITE] = SQLITE_IOERR_WRITE, [DISK_TRUNCATE] = SQLITE_IOERR_TRUNCATE,
        [DISK_SYNC] = SQLITE_IOERR_FSYNC,  [DISK_DELETE] = SQLITE_IOERR_DELETE,
    };
    struct run *run = arg;
    struct disk_call here = *call;
    here.number -= run->from;
    if (run->armed && run->noted != NULL && run->n_noted < CALLS_MAX) {
        here.file = printed("%s", call->file); /* SQLite's file may be closed when it is read */
        run->noted[run->n_noted++] = here;
    }
    if (!run->armed || run->fault_at == 0 || !is_met(run, &here))
        return 0;
    run->met = true;
    run->read = call->op == DISK_READ;
    if (run->kind == SHORT)
        return DISK_SHORT;
    return run->kind == FULL_FROM ? SQLITE_FULL : codes[call->op];
}

/* A store that cannot be opened for its full disk can be read. */
static const char *look_at_full_disk(const struct site *site)
{
    OWNED(store_close) struct store *store = NULL;
    struct site reader = *site;
    uint64_t newest;
    if (store_open_reading(site->path, ENOSPC, &store, fresh_err()) != PMIXFAB_OK)
        return printed("%s", test_err.text);
    reader.store = store;
    if (publish(&reader, fresh_err()) != PMIXFAB_ERR_IO || strstr(test_err.text, "its disk is full") == NULL)
        return "it is not refused to publish";
    return look_at_store(store, site, false, &newest);
}

/* A step that failed has changed nothing: in the process, after a power cut at this moment, and for the next
 * one that tries, when the disk is good again. */
static void check_failed_step(struct run *run, step_fn step, const struct fab_err *err)
{
    struct site *site = &run->site;
    uint64_t newest;
    if (strstr(err->text, site->path) == NULL || strchr(err->text, '\n') != NULL)
        must_be_right(run, "the error is no line about the store", err->text);
    if (site->store == NULL && run->kind == FULL_FROM)
        must_be_right(run, "it is read", look_at_full_disk(site));
    run->armed = false;
    if ((run->kind == BROKEN && !run->read) || run->kind == SHORT)
        must_be_right(run, "after a power cut", look_at_image(site, DISK_TORN, run->fault_at, &newest));
    if (site->store != NULL)
        must_be_right(run, "in the process", look_at_store(site->store, site, true, &newest));
    const int rc = step(site, fresh_err());
    must_be_right(run, "once more", rc == PMIXFAB_OK ? NULL : test_err.text);
}

/* The number of steps that failed. Behind them it publishes once more without faults, and starts again. */
static unsigned play_run(struct run *run, const struct site *before)
{
    struct site *site = &run->site;
    struct fab_err err;
    unsigned failed = 0;
    uint64_t newest;
    site_begin_after(site, before);
    disk_on_call(site->disk, fail_at_call, run);
    if (run->scene->opened)
        must_do(open_it(site, fresh_err()));
    run->from = disk_calls(site->disk);
    run->armed = true;
    for (const step_fn *step = run->scene->steps; *step != NULL; step++)
        if ((*step)(site, &err) != PMIXFAB_OK) {
            check_failed_step(run, *step, &err);
            failed++;
        }
    run->armed = false;
    must_do(publish(site, fresh_err()));
    close_it(site, &err);
    must_do(open_it(site, fresh_err()));
    must_be_right(run, "at the next start", look_at_store(site->store, site, true, &newest));
    site_end(site);
    return failed;
}

static bool are_alike(const struct disk_call *a, const struct disk_call *b)
{
    return a->op == b->op && strcmp(a->file, b->file) == 0;
}

/* Of a row of alike calls the first and the last one; with ./dev test --all each. */
static bool is_tried(const struct run *run, const struct disk_call *noted, size_t i, size_t n)
{
    const char *all = getenv("FABRICD_ALL");
    if (!is_met(run, &noted[i]))
        return false;
    return (all != NULL && all[0] != '\0') || i == 0 || i == n - 1 || !are_alike(&noted[i], &noted[i - 1]) ||
           !are_alike(&noted[i], &noted[i + 1]);
}

/* Each call of a scene fails, alone and with all behind it until a step has failed; and each error arrives.
 */
static void faults_everywhere(const struct scene *scene)
{
    OWNED(free) struct disk_call *noted = must_have(CALLS_MAX * sizeof(*noted));
    struct site before = {0};
    struct run good = {.scene = scene, .noted = noted};
    site_begin(&before);
    must_play(&before, scene->before);
    assert_int_equal(play_run(&good, &before), 0);
    assert_true(good.n_noted < CALLS_MAX);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        unsigned runs = 0, failed = 0;
        for (size_t i = 0; i < good.n_noted; i++) {
            struct run run = {.scene = scene, .kind = kind, .fault_at = noted[i].number};
            if (!is_tried(&run, noted, i, good.n_noted))
                continue;
            failed += play_run(&run, &before);
            runs += run.met;
        }
        print_message("%s, %s: %u runs\n", scene->name, kind_names[kind], runs);
        assert_true(runs > 0);
        assert_int_equal(failed, runs);
    }
    site_end(&before);
}

TEST(a_fault_while_a_store_is_made)
{
    faults_everywhere(&(struct scene){.name = "a new store", .steps = {open_it}});
}

TEST(a_fault_while_a_log_is_recovered)
{
    faults_everywhere(&(struct scene){.name = "a start after a kill",
                                      .before = {open_it, publish, fold_log, take_reports, publish},
                                      .steps = {open_it, fold_log}});
}

TEST(a_fault_while_it_is_published)
{
    faults_everywhere(&(struct scene){.name = "publications",
                                      .before = {open_it, publish, take_reports, close_it},
                                      .opened = true,
                                      .steps = {publish, take_reports, fold_log}});
}

TEST(a_fault_while_the_history_is_trimmed)
{
    faults_everywhere(&(struct scene){.name = "trimming",
                                      .before = {open_it, publish, publish, publish, publish, close_it},
                                      .opened = true,
                                      .steps = {trim, publish, fold_log}});
}

FIXTURE(make_inventories)
{
    site_make_inventories();
    return 0;
}

FIXTURE(free_inventories)
{
    site_free_inventories();
    return 0;
}

TEST_GROUP(make_inventories, free_inventories)
