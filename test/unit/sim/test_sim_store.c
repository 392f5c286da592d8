/*
 * The store on the disk of test/sim: a power cut at each call, and a fault at each call.
 *
 * A site opens its store, publishes, takes reports, trims, closes. What was acknowledged is in the store
 * whatever happens: no generation is lost, none is given twice, and each is whole.
 */
#include "test/unit/store_fixture.h"

#include <errno.h>

#include "fabricd/store/tables/store_absent.h"
#include "fabricd/store/tables/store_history_digest.h"
#include "test/sim/disk.h"

#define CALLS_MAX    1000
#define INVENTORIES  3
#define HOSTS        2
#define SNAPSHOT_MAX 13000
#define KEPT_CHANGES 6 /* what trimming leaves */

struct site {
    char folder[100], image[110], path[120];
    struct disk *disk;
    struct store *store;
    uint64_t newest, offered;   /* the generation that was acknowledged last; the one that may be there */
    unsigned reports, reported; /* the same of the reports that hosts delivered */
    uint64_t trimmed;           /* acknowledged; a power cut may take it back */

    bool looking; /* at images */
    bool changed; /* something has become durable since the last one without what was not synced */
    unsigned images, without; /* of those, with the newest but without the offered generation */

    uint64_t fault_at, from; /* the call, counted from that one; 0: none */
    bool lasting;            /* all calls behind it, too */
    bool met;
    int kind; /* 0: an error of the device; else what the call gets */

    bool note; /* the calls from there on */
    struct disk_call noted[CALLS_MAX];
    size_t n_noted;
};

/* ---- what is published ------------------------------------------------------------------------------ */

static struct fab_inventory inventories[INVENTORIES], nothing;

static const struct fab_inventory *inventory_of(uint64_t generation)
{
    return generation == 0 ? &nothing : &inventories[generation % INVENTORIES];
}

static size_t snapshot_of(uint64_t generation, uint8_t *bytes)
{
    const size_t size = 1000 + generation % 4 * 4000;
    memset(bytes, (int)generation, size);
    return size;
}

/* Two changes, each about a host. */
static void changes_of(uint64_t generation, struct fab_change changes[2])
{
    const char *what = printed("change %llu", (unsigned long long)generation);
    for (unsigned i = 0; i < 2; i++)
        changes[i] = (struct fab_change){.kind = i == 0 ? FAB_CHANGE_LINK_ADDED : FAB_CHANGE_LINK_LOST,
                                         .what = (char *)what,
                                         .before = (char *)"",
                                         .after = (char *)"",
                                         .why = "",
                                         .subjects = i == 0 ? "node1\0" : "node2\0"};
}

/* One node, lost in this generation. */
static struct absent absent_of(uint64_t generation)
{
    struct absent absent = {0};
    const struct fab_lost_item node = {.guid = generation,
                                       .generation = generation,
                                       .seen = (int64_t)generation,
                                       .kind = FAB_SWITCH,
                                       .host = "node1",
                                       .name = "HCA-1"};
    if (generation > 0)
        assert_int_equal(fab_lost_add(&absent.lost, &node), 0);
    fab_retired_finish(&absent.lost);
    return absent;
}

static struct store_report report_of(unsigned host, unsigned delivery)
{
    static uint8_t bytes[HOSTS][2000];
    memset(bytes[host], (int)(delivery + host), sizeof(bytes[host]));
    return (struct store_report){.host = host == 0 ? "node1" : "node2",
                                 .digest = delivery * HOSTS + host + 1,
                                 .received = delivery,
                                 .bytes = bytes[host],
                                 .size = sizeof(bytes[host])};
}

/* ---- what a site does ------------------------------------------------------------------------------- */

typedef int (*step_fn)(struct site *site, struct fab_err *err);

static int open_it(struct site *site, struct fab_err *err)
{
    return store_open(site->path, &site->store, err);
}

static int close_it(struct site *site, struct fab_err *err)
{
    (void)err;
    store_close(site->store);
    site->store = NULL;
    return PMIXFAB_OK;
}

static int publish(struct site *site, struct fab_err *err)
{
    uint8_t bytes[SNAPSHOT_MAX];
    struct fab_change changes[2];
    const uint64_t generation = site->newest + 1;
    struct store_plane plane = {.generation = generation, .name = "plane0", .snapshot = bytes};
    struct fab_diff diff = {.changes = changes, .n = 2};
    struct absent before = absent_of(site->newest), after = absent_of(generation);
    const struct store_report told = report_of(0, site->reports);
    plane.size = snapshot_of(generation, bytes);
    changes_of(generation, changes);
    const struct store_publication publication = {.generation = generation,
                                                  .published = (int64_t)generation * 1000,
                                                  .before = inventory_of(site->newest),
                                                  .after = inventory_of(generation),
                                                  .diff = &diff,
                                                  .planes = &plane,
                                                  .n_planes = 1,
                                                  .announced = &told,
                                                  .n_announced = site->reports > 0,
                                                  .absent_before = &before,
                                                  .absent = &after};
    site->offered = generation;
    const int rc = store_publish(site->store, &publication, err);
    if (rc == PMIXFAB_OK)
        site->newest = generation;
    absent_free(&before);
    absent_free(&after);
    return rc;
}

static int take_reports(struct site *site, struct fab_err *err)
{
    const struct store_report reports[HOSTS] = {report_of(0, site->reports + 1),
                                                report_of(1, site->reports + 1)};
    site->reported = site->reports + 1;
    const int rc = store_reports_put(site->store, reports, HOSTS, err);
    if (rc == PMIXFAB_OK)
        site->reports = site->reported;
    return rc;
}

static int trim(struct site *site, struct fab_err *err)
{
    struct store_trimmed step = {.more = true};
    int rc = PMIXFAB_OK;
    while (rc == PMIXFAB_OK && step.more) {
        rc = store_trim(site->store, &(struct store_limits){.changes = KEPT_CHANGES}, &step, err);
        if (rc == PMIXFAB_OK)
            site->trimmed = step.trimmed;
    }
    return rc;
}

static int fold_log(struct site *site, struct fab_err *err)
{
    return store_checkpoint(site->store, err);
}

/* ---- what is in the store --------------------------------------------------------------------------- */

struct told {
    uint64_t first, n; /* changes: of generations from the first one */
    const char *wrong;
};

static int look_at_change(const struct store_change *change, void *cbdata)
{
    struct told *told = cbdata;
    struct fab_change changes[2];
    const uint64_t generation = told->first + told->n / 2;
    changes_of(generation, changes);
    if (change->generation != generation || change->time != (int64_t)generation * 1000 ||
        strcmp(change->what, changes[0].what) != 0 ||
        strcmp(change->subjects, changes[told->n % 2].subjects) != 0)
        told->wrong = printed("generation %llu of the history is not as it was published",
                              (unsigned long long)generation);
    told->n++;
    return told->wrong != NULL;
}

static const char *look_at_history(struct store *store, uint64_t newest, uint64_t *trimmed)
{
    struct store_bounds bounds;
    struct store_history_checked checked;
    must_do(store_bounds(store, &bounds, fresh_err()));
    struct told told = {.first = bounds.trimmed + 1};
    *trimmed = bounds.trimmed;
    must_do(store_history(store, bounds.trimmed, INT64_MAX, NULL, 0, look_at_change, &told, fresh_err()));
    if (told.wrong == NULL && told.first + told.n / 2 != newest + 1)
        told.wrong = printed("%llu changes of generations %llu to %llu", (unsigned long long)told.n,
                             (unsigned long long)told.first, (unsigned long long)newest);
    if (told.wrong == NULL && newest > 0 &&
        store_history_check(store, newest, NULL, NULL, &checked, fresh_err()) != PMIXFAB_OK)
        told.wrong = test_err.text;
    return told.wrong;
}

static const char *look_at_planes(struct store *store, uint64_t newest)
{
    uint8_t bytes[SNAPSHOT_MAX];
    struct store_plane *planes;
    uint32_t n;
    const size_t size = snapshot_of(newest, bytes);
    must_do(store_load_planes(store, &planes, &n, fresh_err()));
    const bool good =
        n == (newest > 0) && (n == 0 || (planes[0].generation == newest && planes[0].size == size &&
                                         memcmp(planes[0].snapshot, bytes, size) == 0));
    store_planes_free(planes, n);
    return good ? NULL : "the plane is not that of the generation";
}

static const char *look_at_lost(struct store *store, uint64_t newest)
{
    struct absent absent;
    must_do(store_absent_load(store, &absent, fresh_err()));
    const bool good =
        absent.lost.nodes.n == (newest > 0) && (newest == 0 || absent.lost.nodes.items[0].guid == newest);
    absent_free(&absent);
    return good ? NULL : "what is lost is not that of the generation";
}

struct delivered {
    unsigned n, delivery;
    bool wrong;
};

static int look_at_report(const struct store_report *report, void *cbdata)
{
    struct delivered *delivered = cbdata;
    const unsigned delivery = (unsigned)report->received;
    const struct store_report expected = report_of(delivered->n % HOSTS, delivery);
    delivered->wrong |= (delivered->n > 0 && delivery != delivered->delivery) ||
                        strcmp(report->host, expected.host) != 0 || report->digest != expected.digest ||
                        report->size != expected.size ||
                        memcmp(report->bytes, expected.bytes, expected.size) != 0;
    delivered->delivery = delivery;
    delivered->n++;
    return 0;
}

static const char *look_at_reports(struct store *store, const struct site *site)
{
    struct delivered delivered = {0};
    must_do(store_reports_load(store, look_at_report, &delivered, fresh_err()));
    if (delivered.wrong || (delivered.n != 0 && delivered.n != HOSTS))
        return "the reports are not those of one delivery";
    return delivered.delivery < site->reports || delivered.delivery > site->reported
               ? printed("reports of delivery %u; acknowledged: %u", delivered.delivery, site->reports)
               : NULL;
}

/* What is wrong with an open store; NULL: nothing. A store that was never closed has exactly what was
 * acknowledged; another one may have what was offered. */
static const char *look_at_store(struct store *store, const struct site *site, bool exactly, uint64_t *newest)
{
    SCOPED(fab_inventory) inventory;
    struct store_marks marks;
    uint64_t next, trimmed;
    int64_t published;
    char said[100];
    fab_inventory_init(&inventory);
    must_do(store_ask(store, "PRAGMA integrity_check", said, sizeof(said), "looking", fresh_err()));
    must_do(store_generation(store, newest, &published, fresh_err()));
    must_do(store_next_generation(store, &next, fresh_err()));
    must_do(store_load_inventory(store, &inventory, fresh_err()));
    store_marks(store, &marks);
    if (strcmp(said, "ok") != 0)
        return printed("integrity: %s", said);
    if (*newest < site->newest || *newest > (exactly ? site->newest : site->offered))
        return printed("generation %llu; acknowledged: %llu", (unsigned long long)*newest,
                       (unsigned long long)site->newest);
    if (next != *newest + 1 || marks.newest > *newest || published != (int64_t)*newest * 1000)
        return "numbers or times are not those of the generation";
    if (!fab_inventory_equal(&inventory, inventory_of(*newest)))
        return "the inventory is not that of the generation";
    const char *wrong = look_at_history(store, *newest, &trimmed);
    if (wrong == NULL && exactly && trimmed < site->trimmed)
        wrong = "what was trimmed is there";
    if (wrong == NULL)
        wrong = look_at_planes(store, *newest);
    if (wrong == NULL)
        wrong = look_at_lost(store, *newest);
    return wrong != NULL ? wrong : look_at_reports(store, site);
}

/* ---- power cuts ------------------------------------------------------------------------------------- */

static void remove_files(const char *folder)
{
    static const char *const names[] = {"", "-wal", "-shm", "-journal", ".lock"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(printed("%s/fabric.db%s", folder, names[i]));
    assert_int_equal(rmdir(folder), 0);
}

/* What a stop at this moment leaves is opened, is good, and takes the next generation. */
static const char *look_at_image(struct site *site, enum disk_loss how, uint64_t seed)
{
    struct site after = {.newest = 0};
    const char *wrong;
    assert_int_equal(mkdir(site->image, 0700), 0);
    assert_int_equal(disk_image(site->disk, how, seed, site->image), 0);
    const char *path = printed("%s/fabric.db", site->image);
    if (store_open(path, &after.store, fresh_err()) != PMIXFAB_OK)
        return printed("%s", test_err.text);
    wrong = look_at_store(after.store, site, false, &after.newest);
    site->images++;
    site->without += after.newest < site->offered;
    if (wrong == NULL && publish(&after, fresh_err()) != PMIXFAB_OK)
        wrong = printed("%s", test_err.text);
    store_close(after.store);
    remove_files(site->image);
    return wrong;
}

static void must_look_good(struct site *site, enum disk_loss how, const struct disk_call *call)
{
    static const char *const names[] = {"a kill", "a power cut", "a power cut that tears"};
    const char *wrong = look_at_image(site, how, call->number);
    if (wrong != NULL)
        fail_msg("%s before call %llu (%s %s at %lld, %lld bytes): %s", names[how],
                 (unsigned long long)call->number, disk_op_name(call->op), call->file,
                 (long long)call->offset, (long long)call->size, wrong);
}

/* A full disk can do all that takes no room. A device that breaks for longer breaks at a call that changes
 * something.
 */
static bool fault_meets(const struct site *site, const struct disk_call *call)
{
    if (site->kind == 0)
        return !site->lasting || call->op != DISK_READ || call->number > site->fault_at;
    return site->lasting ? call->grows : call->op == DISK_WRITE || call->op == DISK_OPEN;
}

static int on_call(void *arg, const struct disk_call *call)
{
    static const int codes[] = {
        [DISK_OPEN] = SQLITE_CANTOPEN,     [DISK_READ] = SQLITE_IOERR_READ,
        [DISK_WRITE] = SQLITE_IOERR_WRITE, [DISK_TRUNCATE] = SQLITE_IOERR_TRUNCATE,
        [DISK_SYNC] = SQLITE_IOERR_FSYNC,  [DISK_DELETE] = SQLITE_IOERR_DELETE,
    };
    struct site *site = arg;
    if (site->looking && call->op != DISK_READ) {
        if (call->op != DISK_WRITE) /* in the middle of writes: torn in all ways */
            must_look_good(site, DISK_KEEPS, call);
        if (site->changed)
            must_look_good(site, DISK_LOSES, call);
        must_look_good(site, DISK_TORN, call);
        site->changed = call->op == DISK_SYNC || call->op == DISK_DELETE;
    }
    struct disk_call here = *call;
    here.number -= site->from;
    if (site->note && here.number < CALLS_MAX)
        site->noted[site->n_noted++] = here;
    if (site->fault_at == 0 ||
        (site->lasting ? here.number < site->fault_at : here.number != site->fault_at) ||
        !fault_meets(site, &here))
        return 0;
    site->met = true;
    return site->kind != 0 ? site->kind : codes[call->op];
}

/* ---- sites ------------------------------------------------------------------------------------------ */

static void begin_site(struct site *site)
{
    const char *place = getenv("TMPDIR");
    snprintf(site->folder, sizeof(site->folder), "%s/fabsite.XXXXXX", place != NULL ? place : "/tmp");
    assert_non_null(mkdtemp(site->folder));
    snprintf(site->image, sizeof(site->image), "%s.image", site->folder);
    snprintf(site->path, sizeof(site->path), "%s/fabric.db", site->folder);
    site->disk = disk_new(site->folder);
    assert_non_null(site->disk);
    disk_on_call(site->disk, on_call, site);
}

static void end_site(struct site *site)
{
    store_close(site->store);
    site->store = NULL;
    disk_free(site->disk);
    remove_files(site->folder);
}

/* What another site leaves when it is killed, and what of it was acknowledged. */
static void begin_after(struct site *site, const struct site *killed)
{
    begin_site(site);
    assert_int_equal(disk_image(killed->disk, DISK_KEEPS, 0, site->folder), 0);
    site->newest = site->offered = killed->newest;
    site->reports = site->reported = killed->reports;
    site->trimmed = killed->trimmed;
}

static void must_play(struct site *site, const step_fn *steps)
{
    for (; *steps != NULL; steps++)
        must_do((*steps)(site, fresh_err()));
}

TEST(a_power_cut_loses_nothing_that_was_acknowledged)
{
    static const step_fn story[] = {open_it,      publish, publish,  take_reports, publish,  publish,
                                    trim,         publish, fold_log, publish,      close_it, open_it,
                                    take_reports, publish, trim,     close_it,     NULL};
    struct site site = {.looking = true};
    begin_site(&site);
    must_play(&site, story);
    print_message("%llu calls, %u images, %u without the generation under way\n",
                  (unsigned long long)disk_calls(site.disk), site.images, site.without);
    assert_true(site.images > 500);
    assert_true(site.without > 0);
    end_site(&site);
}

/* Killed, and cut off once more while the log is read and folded. */
TEST(a_power_cut_while_a_log_is_recovered_loses_nothing)
{
    static const step_fn first[] = {open_it, publish, take_reports, publish, NULL};
    static const step_fn second[] = {open_it, publish, close_it, NULL};
    struct site killed = {0}, site = {.looking = true, .changed = true};
    begin_site(&killed);
    must_play(&killed, first);
    begin_after(&site, &killed);
    must_play(&site, second);
    print_message("%u images\n", site.images);
    assert_true(site.images > 90);
    end_site(&site);
    end_site(&killed);
}

/* ---- faults ----------------------------------------------------------------------------------------- */

/* A site did some steps, was killed, and started again; or was closed before. */
struct scene {
    const char *name;
    step_fn before[8];
    bool opened;      /* without faults */
    step_fn steps[4]; /* with them; then it publishes once more without */
};

static const char *fault_kind(const struct site *site)
{
    if (site->kind == 0)
        return "an error";
    return site->kind == DISK_SHORT ? "a short write" : "a full disk";
}

static void must_be_right(const struct scene *scene, const struct site *site, const char *when,
                          const char *wrong)
{
    if (wrong != NULL)
        fail_msg("%s, %s %s call %llu: %s: %s", scene->name, fault_kind(site), site->lasting ? "from" : "at",
                 (unsigned long long)site->fault_at, when, wrong);
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
static void check_failed_step(const struct scene *scene, struct site *site, step_fn step,
                              const struct fab_err *err)
{
    const uint64_t fault = site->fault_at;
    uint64_t newest;
    if (strstr(err->text, site->path) == NULL || strchr(err->text, '\n') != NULL)
        must_be_right(scene, site, "the error is no line about the store", err->text);
    if (site->store == NULL && site->lasting && site->kind == SQLITE_FULL)
        must_be_right(scene, site, "read", look_at_full_disk(site));
    site->fault_at = 0;
    if (!site->lasting)
        must_be_right(scene, site, "after a power cut", look_at_image(site, DISK_TORN, fault));
    if (site->store != NULL)
        must_be_right(scene, site, "in the process", look_at_store(site->store, site, true, &newest));
    const int rc = step(site, fresh_err());
    site->fault_at = fault;
    must_be_right(scene, site, "once more", rc == PMIXFAB_OK ? NULL : test_err.text);
    site->fault_at = 0;
}

/* One run of a scene, from a fault that is set in *site. The steps that failed. */
static unsigned play_scene(const struct scene *scene, const struct site *before, struct site *site)
{
    const struct site fault = *site;
    struct fab_err err;
    unsigned failed = 0;
    uint64_t newest;
    site->fault_at = 0;
    begin_after(site, before);
    if (scene->opened)
        must_do(open_it(site, fresh_err()));
    site->from = disk_calls(site->disk);
    site->note = fault.fault_at == 0;
    site->fault_at = fault.fault_at;
    for (const step_fn *step = scene->steps; *step != NULL; step++)
        if ((*step)(site, &err) != PMIXFAB_OK) {
            check_failed_step(scene, site, *step, &err);
            failed++;
        }
    site->fault_at = 0;
    site->note = false;
    must_do(publish(site, fresh_err()));
    close_it(site, &err);
    must_do(open_it(site, fresh_err()));
    must_be_right(scene, &fault, "at the next start", look_at_store(site->store, site, true, &newest));
    end_site(site);
    return failed;
}

/* Each call of a scene fails once, and with all behind it until a step has failed. */
static void faults_everywhere(const struct scene *scene)
{
    static const struct site faults[] = {{.kind = 0},
                                         {.kind = DISK_SHORT},
                                         {.kind = 0, .lasting = true},
                                         {.kind = SQLITE_FULL, .lasting = true}};
    struct site before = {0}, good = {0};
    begin_site(&before);
    must_play(&before, scene->before);
    assert_int_equal(play_scene(scene, &before, &good), 0);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        unsigned runs = 0, failed = 0;
        for (size_t k = 0; k < good.n_noted; k++) {
            struct site site = faults[i];
            site.fault_at = good.noted[k].number;
            if (!fault_meets(&site, &good.noted[k]))
                continue;
            failed += play_scene(scene, &before, &site);
            runs += site.met;
        }
        print_message("%s %s: %u runs\n", fault_kind(&faults[i]), faults[i].lasting ? "from" : "at", runs);
        assert_true(runs > 0);
        assert_int_equal(failed, runs); /* each error arrives */
    }
    end_site(&before);
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
    nothing = empty_inventory();
    for (unsigned i = 0; i < INVENTORIES; i++)
        inventories[i] = odd_inventory(5, 5, i);
    return 0;
}

FIXTURE(free_inventories)
{
    for (unsigned i = 0; i < INVENTORIES; i++)
        fab_inventory_destroy(&inventories[i]);
    fab_inventory_destroy(&nothing);
    return 0;
}

TEST_GROUP(make_inventories, free_inventories)
