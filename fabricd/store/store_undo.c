/* store_undo.c - takes back what a restore that was killed has left; before the store is opened. */
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "fabricd/store/file_priv.h"
#include "fabricd/store/store_copy.h"

const char *const store_beside[2] = {"-wal", "-shm"};

static bool is_copy_of(const char *path, const struct stat *st)
{
    struct stat other;
    return lstat(path, &other) == 0 && other.st_ino == st->st_ino && other.st_dev == st->st_dev;
}

void store_copy_name(char *copy, size_t size, const char *path)
{
    snprintf(copy, size, "%s" STORE_COPY, path);
}

/* Of a copy that is no store yet. */
static void remove_copy(const char *path)
{
    static const char *const all[] = {"", "-wal", "-shm", "-journal", ".lock"};
    char copy[PATH_MAX], name[PATH_MAX + 16];
    struct stat st;
    store_copy_name(copy, sizeof(copy), path);
    if (lstat(copy, &st) == 0 && (!S_ISREG(st.st_mode) || !store_is_unfinished(copy)))
        return; /* nothing of ours */
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        snprintf(name, sizeof(name), "%s%s", copy, all[i]);
        unlink(name);
    }
}

int store_kept_name(char *kept, size_t size, const char *path, unsigned i)
{
    int n = i == 1 ? snprintf(kept, size, "%s" STORE_KEPT, path)
                   : snprintf(kept, size, "%s" STORE_KEPT ".%u", path, i);
    return n > 0 && (size_t)n < size ? PMIXFAB_OK : PMIXFAB_ERR_RANGE;
}

/* The store has its second name, and the copy is not in its place: two names of one database would be opened
 * with two logs. */
static void remove_second_name(const char *path)
{
    char kept[PATH_MAX], from[PATH_MAX + 8], to[PATH_MAX + 8];
    struct stat st;
    if (stat(path, &st) != 0)
        return;
    for (unsigned i = 1; i < STORE_MOST_KEPT && store_kept_name(kept, sizeof(kept), path, i) == PMIXFAB_OK &&
                         access(kept, F_OK) == 0;
         i++) {
        if (!is_copy_of(kept, &st))
            continue;
        for (size_t k = 0; k < sizeof(store_beside) / sizeof(store_beside[0]); k++) {
            snprintf(from, sizeof(from), "%s%s", kept, store_beside[k]);
            snprintf(to, sizeof(to), "%s%s", path, store_beside[k]);
            if (access(to, F_OK) != 0)
                rename(from, to);
        }
        unlink(kept);
        log_warning("store %s: a restore was interrupted: it is as it was", path);
        return;
    }
}

void store_undo_restore(const char *path)
{
    remove_second_name(path);
    remove_copy(path);
}
