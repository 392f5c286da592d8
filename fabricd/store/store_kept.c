/* store_kept.c - the store as it was before its schema was brought up to date: a copy beside it, for a while.
 */
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "fabricd/store/file_priv.h"
#include "fabricd/store/schema.h"

#define BEFORE_SCHEMA ".schema-" /* behind the name of the store, with the schema that it had */

int store_name_before(char *kept, size_t size, const char *path, int version)
{
    int n = snprintf(kept, size, "%s" BEFORE_SCHEMA "%d", path, version);
    return n > 0 && (size_t)n < size ? PMIXFAB_OK : PMIXFAB_ERR_RANGE;
}

bool store_kept_for(const char *path, int known, char *kept, size_t size)
{
    while (known > 0 && (store_name_before(kept, size, path, known) != PMIXFAB_OK || access(kept, F_OK) != 0))
        known--;
    return known > 0;
}

void store_forget_kept(const struct store *store, int64_t before)
{
    char kept[PATH_MAX];
    struct stat st;
    for (int version = 1; schema_sql[version - 1] != NULL; version++)
        if (store_name_before(kept, sizeof(kept), store->path, version) == PMIXFAB_OK &&
            lstat(kept, &st) == 0 && S_ISREG(st.st_mode) && (int64_t)st.st_mtime * 1000000 < before &&
            unlink(kept) == 0)
            log_info("store %s: %s is removed for its age", store->path, kept);
}
