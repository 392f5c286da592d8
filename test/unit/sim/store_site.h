/*
 * store_site.h - a site that writes into a store on the disk of test/sim, and what must be in it at any
 * moment.
 *
 * What was acknowledged is there: no generation is lost, none is given twice, and each is whole.
 */
#ifndef TEST_UNIT_SIM_STORE_SITE_H
#define TEST_UNIT_SIM_STORE_SITE_H

#include "fabricd/store/store.h"
#include "fabricd/store/store_tables.h"
#include "test/sim/disk.h"
#include "test/unit/store_fixture.h"

#define INVENTORIES  3
#define HOSTS        2
#define SNAPSHOT_MAX 13000
#define KEPT_CHANGES 6 /* what trimming leaves */

struct site {
    char folder[100], path[120];
    struct disk *disk;
    struct store *store;        /* NULL: it is not open */
    uint64_t newest, offered;   /* the generation that was acknowledged last; the one that may be there */
    unsigned reports, reported; /* the same of the reports that hosts delivered */
    uint64_t trimmed;           /* acknowledged; a power cut may take it back */
};

/* ---- what is published ------------------------------------------------------------------------------ */

static struct fab_inventory inventories[INVENTORIES], nothing;

static inline void site_make_inventories(void)
{
    nothing = empty_inventory();
    for (unsigned i = 0; i < INVENTORIES; i++)
        inventories[i] = odd_inventory(5, 5, i);
}

static inline void site_free_inventories(void)
{
    for (unsigned i = 0; i < INVENTORIES; i++)
        fab_inventory_destroy(&inventories[i]);
    fab_inventory_destroy(&nothing);
}

static inline const struct fab_inventory *inventory_of(uint64_t generation)
{
    return generation == 0 ? &nothing : &inventories[generation % INVENTORIES];
}

static inline size_t snapshot_of(uint64_t generation, uint8_t *bytes)
{
    const size_t size = 1000 + generation % 4 * 4000;
    memset(bytes, (int)generation, size);
    return size;
}

/* Two changes, each about a host. */
static inline void changes_of(uint64_t generation, struct fab_change changes[2])
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
static inline struct absent absent_of(uint64_t generation)
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
    fab_lost_finish(&absent.lost);
    return absent;
}

static inline struct store_report report_of(unsigned host, unsigned delivery)
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

static inline int open_it(struct site *site, struct fab_err *err)
{
    return store_open(site->path, &site->store, err);
}

static inline int close_it(struct site *site, struct fab_err *err)
{
    (void)err;
    store_close(site->store);
    site->store = NULL;
    return PMIXFAB_OK;
}

static inline int publish(struct site *site, struct fab_err *err)
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

static inline int take_reports(struct site *site, struct fab_err *err)
{
    const struct store_report reports[HOSTS] = {report_of(0, site->reports + 1),
                                                report_of(1, site->reports + 1)};
    site->reported = site->reports + 1;
    const int rc = store_reports_put(site->store, reports, HOSTS, err);
    if (rc == PMIXFAB_OK)
        site->reports = site->reported;
    return rc;
}

static inline int trim(struct site *site, struct fab_err *err)
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

static inline int fold_log(struct site *site, struct fab_err *err)
{
    return store_checkpoint(site->store, err);
}

/* ---- what is in the store --------------------------------------------------------------------------- */

struct told {
    uint64_t first, n; /* changes: of generations from the first one */
    const char *wrong;
};

static inline int look_at_change(const struct store_change *change, void *cbdata)
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

static inline const char *look_at_history(struct store *store, uint64_t newest, uint64_t *trimmed)
{
    struct store_bounds bounds;
    struct store_history_checked checked;
    char said[32];
    must_do(store_bounds(store, &bounds, fresh_err()));
    must_do(store_ask(store, "SELECT count(*) FROM change", said, sizeof(said), "looking", fresh_err()));
    struct told told = {.first = bounds.trimmed + 1};
    *trimmed = bounds.trimmed;
    must_do(store_history(store, bounds.trimmed, INT64_MAX, NULL, 0, look_at_change, &told, fresh_err()));
    if (told.wrong == NULL && told.first + told.n / 2 != newest + 1)
        told.wrong = printed("%llu changes of generations %llu to %llu", (unsigned long long)told.n,
                             (unsigned long long)told.first, (unsigned long long)newest);
    if (told.wrong == NULL && strtoull(said, NULL, 10) != bounds.changes)
        told.wrong = printed("%s changes, counted as %llu", said, (unsigned long long)bounds.changes);
    if (told.wrong == NULL && newest > 0 &&
        store_history_check(store, newest, NULL, NULL, &checked, fresh_err()) != PMIXFAB_OK)
        told.wrong = test_err.text;
    return told.wrong;
}

static inline const char *look_at_planes(struct store *store, uint64_t newest)
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

static inline const char *look_at_lost(struct store *store, uint64_t newest)
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

static inline int look_at_report(const struct store_report *report, void *cbdata)
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

static inline const char *look_at_reports(struct store *store, const struct site *site)
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
static inline const char *look_at_store(struct store *store, const struct site *site, bool exactly,
                                        uint64_t *newest)
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

/* ---- its folder ------------------------------------------------------------------------------------- */

static inline void site_begin(struct site *site)
{
    const char *place = getenv("TMPDIR");
    snprintf(site->folder, sizeof(site->folder), "%s/fabsite.XXXXXX", place != NULL ? place : "/tmp");
    assert_non_null(mkdtemp(site->folder));
    snprintf(site->path, sizeof(site->path), "%s/fabric.db", site->folder);
    site->disk = disk_new(site->folder);
    assert_non_null(site->disk);
}

/* What another site leaves when it is killed, and what of it was acknowledged. Sites end in reverse order. */
static inline void site_begin_after(struct site *site, const struct site *killed)
{
    site_begin(site);
    assert_int_equal(disk_image(killed->disk, DISK_KEEPS, 0, site->folder), 0);
    site->newest = site->offered = killed->newest;
    site->reports = site->reported = killed->reports;
    site->trimmed = killed->trimmed;
}

/* Quicker than a shell for each of thousands. */
static inline void site_remove(const char *folder)
{
    static const char *const names[] = {"", "-wal", "-shm", "-journal", ".lock"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(printed("%s/fabric.db%s", folder, names[i]));
    assert_int_equal(rmdir(folder), 0);
}

static inline void site_end(struct site *site)
{
    store_close(site->store);
    site->store = NULL;
    disk_free(site->disk);
    site_remove(site->folder);
}

static inline void must_play(struct site *site, const step_fn *steps)
{
    for (; *steps != NULL; steps++)
        must_do((*steps)(site, fresh_err()));
}

/* ---- what a stop leaves ----------------------------------------------------------------------------- */

/* An image of this moment is opened, is good, and takes the next generation. *newest: the one that it has. */
static inline const char *look_at_image(const struct site *site, enum disk_loss how, uint64_t seed,
                                        uint64_t *newest)
{
    const char *folder = printed("%s.image", site->folder), *wrong = NULL;
    struct site after = {.newest = 0};
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(disk_image(site->disk, how, seed, folder), 0);
    snprintf(after.path, sizeof(after.path), "%s/fabric.db", folder);
    if (open_it(&after, fresh_err()) != PMIXFAB_OK)
        return printed("%s", test_err.text);
    wrong = look_at_store(after.store, site, false, &after.newest);
    *newest = after.newest;
    if (wrong == NULL && publish(&after, fresh_err()) != PMIXFAB_OK)
        wrong = printed("%s", test_err.text);
    store_close(after.store);
    site_remove(folder);
    return wrong;
}

#endif
