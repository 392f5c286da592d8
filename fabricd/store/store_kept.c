/* store_kept.c - the store as it was before its schema was brought up to date: a copy beside it, for a while. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/store/handle.h"
#include "fabricd/store/store_copy.h"
#include "fabricd/util/log.h"

#define BEFORE_SCHEMA ".schema-" /* behind the name of the store, with the schema that it had */
#define SCHEMAS       1000       /* no schema has so high a number */

static int name_before(char *kept, size_t size, const char *path, int version)
{
    int n = snprintf(kept, size, "%s" BEFORE_SCHEMA "%d", path, version);
    return n > 0 && (size_t)n < size ? PMIXFAB_OK : PMIXFAB_ERR_RANGE;
}

/* Under the name of a restore's copy until it is whole: whoever opens the store next removes half a one. */
int store_keep(const struct store *store, const char *const *schema, int version, struct fab_err *err)
{
    char copy[PATH_MAX], kept[PATH_MAX];
    const struct store_copy order = {.from = store->path, .to = copy, .schema = schema};
    uint64_t bytes;
    if (name_before(kept, sizeof(kept), store->path, version) != PMIXFAB_OK)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "store %.200s...: the path is too long", store->path);
    store_copy_name(copy, sizeof(copy), store->path);
    int rc = store_copy(&order, &bytes, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (rename(copy, kept) != 0) {
        unlink(copy);
        return fab_fail(err, PMIXFAB_ERR_IO, "store %s: cannot be kept as %s", store->path, kept);
    }
    sync(); /* the name, too */
    log_info("store %s: its schema goes from %d to %d; as it was it is kept as %s", store->path, version,
             store_count_steps(schema), kept);
    return PMIXFAB_OK;
}

void store_keep_not(const struct store *store, int version)
{
    char kept[PATH_MAX];
    if (name_before(kept, sizeof(kept), store->path, version) == PMIXFAB_OK)
        unlink(kept);
}

bool store_kept_for(const char *path, int known, char *kept, size_t size)
{
    while (known > 0 &&
           (name_before(kept, size, path, known) != PMIXFAB_OK || access(kept, F_OK) != 0))
        known--;
    return known > 0;
}

void store_forget_kept(const struct store *store, int64_t before)
{
    char kept[PATH_MAX];
    struct stat st;
    for (int version = 1; version < SCHEMAS; version++)
        if (name_before(kept, sizeof(kept), store->path, version) == PMIXFAB_OK && lstat(kept, &st) == 0 &&
            S_ISREG(st.st_mode) && (int64_t)st.st_mtime * 1000000 < before && unlink(kept) == 0)
            log_info("store %s: %s is removed for its age", store->path, kept);
}
