/* publisher.c - the publisher's start: what the store published last goes into service again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"
#include "fabricd/engine/update.h"
#include "fabricd/store/store.h"

int publisher_names(const struct config *config, struct fab_names **out, struct fab_err *err)
{
    struct fab_names *names = NULL;
    char *text = NULL;
    size_t len = 0;
    *out = NULL;
    int rc = fab_names_new(config->names_pattern, &names, err);
    if (rc == PMIXFAB_OK)
        rc = fab_names_switches(names, config->switch_pattern, err);
    if (rc == PMIXFAB_OK && config->names_map != NULL)
        rc = file_text(config->names_map, &text, &len, err);
    if (rc == PMIXFAB_OK && text != NULL)
        rc = fab_names_map(names, config->names_map, text, len, err);
    free(text);
    if (rc != PMIXFAB_OK) {
        fab_names_free(names);
        return rc;
    }
    *out = names;
    return PMIXFAB_OK;
}

int publisher_read_names(struct publisher *publisher, struct fab_err *err)
{
    struct fab_names *names = NULL;
    int rc = publisher_names(publisher->config, &names, err);
    if (rc != PMIXFAB_OK)
        return rc;
    fab_names_free(publisher->names);
    publisher->names = names;
    return PMIXFAB_OK;
}

/* Move a stored plane into service. What cannot be read any more is no error: the next sweep makes it anew.
 */
static int restore_plane(struct publisher *publisher, struct store_plane *known, struct served_plane **out,
                         struct fab_err *err)
{
    struct fab_err why = {""};
    void *bytes = known->snapshot;
    known->snapshot = NULL;
    int rc = served_plane_new(bytes, known->size, publisher->config->rundir, out, &why);
    known->size = 0;
    if (rc == PMIXFAB_ERR_NOMEM)
        return fab_fail(err, rc, "%s", why.text);
    if (rc != PMIXFAB_OK || *out == NULL) {
        log_error("store: the snapshot of plane %s is not served: %s", known->name, why.text);
    }
    return PMIXFAB_OK;
}

static int publisher_load_served(struct publisher *publisher, struct fab_err *err)
{
    struct store_plane *known = NULL;
    struct served_plane **planes = NULL;
    struct served_set *set = NULL;
    uint32_t n_known = 0, n = 0;
    int rc = store_load_planes(publisher->store, &known, &n_known, err);
    if (rc == PMIXFAB_OK)
        rc = publish_renumber(publisher, known, n_known, err);
    if (rc == PMIXFAB_OK)
        rc = publish_inherit(publisher, &set, err);
    if (set != NULL) {
        served_swap(publisher->served, set);
        store_planes_free(known, n_known);
        return rc;
    }
    if (rc == PMIXFAB_OK) {
        planes = calloc(n_known + 1, sizeof(*planes));
        publisher->retired = calloc(n_known + 1, sizeof(*publisher->retired));
        if (planes == NULL || publisher->retired == NULL)
            rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    for (uint32_t i = 0; rc == PMIXFAB_OK && planes != NULL && publisher->retired != NULL && i < n_known;
         i++) {
        if (!known[i].retired)
            rc = restore_plane(publisher, &known[i], &planes[n], err);
        if (planes[n] != NULL) {
            n++;
        } else if (rc == PMIXFAB_OK) {
            /* Not served: its number stays taken, and its last members vote for it. */
            publisher->retired[publisher->n_retired++] = known[i];
            known[i].snapshot = NULL;
        }
    }
    if (rc == PMIXFAB_OK) {
        set = served_set_new(planes, n, publisher->generation, publisher->published);
        rc = set == NULL ? fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory") : PMIXFAB_OK;
    }
    if (rc == PMIXFAB_OK) {
        struct fab_err why = {""};
        rundir_clean(publisher->config->rundir, set);
        if (rundir_put(publisher->config->rundir, set, &why) != PMIXFAB_OK)
            log_error(
                "run directory: %s: it is tried again at each sweep; readers of the directory and PMIx tools "
                "lack what is not there",
                why.text);
        served_swap(publisher->served, set);
    }
    for (uint32_t i = 0; rc != PMIXFAB_OK && i < n; i++)
        served_plane_put(planes[i]);
    free(planes);
    store_planes_free(known, n_known);
    return rc;
}

/* no_room: as store_no_room() says; 0: the store is opened as usual. */
static int publisher_try(const struct config *config, struct counts *counts, int no_room,
                         struct publisher **out, struct fab_err *err)
{
    *out = NULL;
    struct publisher *publisher = calloc(1, sizeof(*publisher));
    if (publisher == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    publisher->config = config;
    publisher->counts = counts;
    fab_inventory_init(&publisher->current);
    publisher->served = served_new();
    publisher->joins = fab_join_cache_new(); /* without memory for it joining takes longer */
    int rc = publisher->served != NULL ? publisher_read_names(publisher, err)
                                       : fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    if (rc == PMIXFAB_OK)
        rc = no_room == 0 ? store_open(config->store, &publisher->store, err)
                          : store_open_reading(config->store, no_room, &publisher->store, err);
    if (rc == PMIXFAB_OK)
        rc = store_generation(publisher->store, &publisher->generation, &publisher->published, err);
    if (rc == PMIXFAB_OK)
        rc = planned_new(publisher->store, &publisher->planned, err);
    if (rc == PMIXFAB_OK)
        rc = store_load_inventory(publisher->store, &publisher->current, err);
    if (rc == PMIXFAB_OK)
        rc = retention_init(publisher, err);
    if (rc == PMIXFAB_OK)
        rc = publisher_read_absent(publisher, err);
    if (rc == PMIXFAB_OK)
        rc = publisher_read_reports(publisher, err);
    if (rc == PMIXFAB_OK)
        rc = publisher_load_served(publisher, err);
    if (rc != PMIXFAB_OK) {
        publisher_free(publisher);
        return rc;
    }
    *out = publisher;
    return PMIXFAB_OK;
}

int publisher_new(const struct config *config, struct counts *counts, struct publisher **out,
                  struct fab_err *err)
{
    int rc = publisher_try(config, counts, 0, out, err);
    if (config->once || (rc != PMIXFAB_OK && rc != PMIXFAB_ERR_IO))
        return rc;
    const int no_room = store_no_room(config->store, rc == PMIXFAB_OK);
    if (no_room == 0)
        return rc;
    if (rc != PMIXFAB_OK)
        log_error("%s", err->text);
    publisher_free(*out);
    rc = publisher_try(config, counts, no_room, out, err);
    if (rc == PMIXFAB_OK)
        log_error("%s", (*out)->stale_why);
    return rc;
}

void publisher_free(struct publisher *publisher)
{
    if (publisher == NULL)
        return;
    served_free(publisher->served);
    for (uint32_t i = 0; i < publisher->n_retired; i++)
        free(publisher->retired[i].snapshot);
    free(publisher->retired);
    fab_names_free(publisher->names);
    retention_free(&publisher->retention);
    fab_inventory_destroy(&publisher->current);
    absent_free(&publisher->absent);
    published_reports_free(&publisher->reports);
    join_findings_free(&publisher->found);
    fab_join_cache_free(publisher->joins);
    fab_findings_destroy(&publisher->findings);
    planned_free(publisher->planned);
    free(publisher->gone);
    store_close(publisher->store);
    free(publisher);
}

struct planned *publisher_planned(const struct publisher *publisher)
{
    return publisher->planned;
}

struct store *publisher_store(struct publisher *publisher)
{
    return publisher->store;
}

struct served *publisher_served(const struct publisher *publisher)
{
    return publisher->served;
}
