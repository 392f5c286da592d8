/* store_publish.c - a change, whole or not at all: transactions. */
#include "fabricd/store/store_absent.h"
#include "fabricd/store/tables_priv.h"

/* Numbers of generations leave no gap, but after a restore, and are never given twice. */
static int check_generation(struct store *store, uint64_t generation, struct fab_err *err)
{
    uint64_t next;
    int rc = store_next_generation(store, &next, err);
    if (rc == PMIXFAB_OK && generation != 0 && generation != next)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                        "store %s: generation %llu cannot follow generation %llu; restart fabricd",
                        store->path, (unsigned long long)generation, (unsigned long long)next - 1);
    return rc;
}

static int store_write_update(struct store *store, const struct store_publication *publication,
                              struct fab_err *err)
{
    int rc = check_generation(store, publication->generation, err);
    if (rc == PMIXFAB_OK && publication->generation != 0)
        rc = store_write_generation(store, publication, err);
    if (rc == PMIXFAB_OK && publication->generation != 0)
        rc = store_write_history_digest(store, publication->generation, err);
    if (rc == PMIXFAB_OK && publication->generation != 0 && publication->diff != NULL &&
        publication->diff->n > 0)
        rc = store_count_changes(store, publication->diff->n, err);
    if (rc == PMIXFAB_OK && publication->before != publication->after)
        rc = store_write_inventory(store, publication->before, publication->after, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < publication->n_planes; i++)
        rc = store_write_plane(store, &publication->planes[i], err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < publication->n_announced; i++)
        rc = store_write_announced(store, &publication->announced[i], err);
    if (rc == PMIXFAB_OK && publication->absent != NULL)
        rc = store_write_absent(store, publication->absent_before, publication->absent,
                                publication->generation != 0, err);
    if (rc == PMIXFAB_OK && publication->ready != NULL)
        rc = publication->ready(publication->ready_data, err);
    return rc;
}

int store_publish(struct store *store, const struct store_publication *publication, struct fab_err *err)
{
    if (!publication->before->finished || !publication->after->finished)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "store %s: only a finished inventory can be published",
                        store->path);
    int rc = store_begin(store, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = store_end(store, store_write_update(store, publication, err), err);
    if (rc == PMIXFAB_OK && publication->generation != 0)
        store_mark_newest(store, publication->generation);
    return rc;
}
