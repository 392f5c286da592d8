#include "fabricd/process/private_folder.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_ours(uid_t owner)
{
    return owner == 0 || owner == geteuid();
}

/* Who may put something else in the place of what is in it; NULL: nobody else. */
static const char *who_replaces(const struct stat *st)
{
    const bool sticky = (st->st_mode & S_ISVTX) != 0;
    if (!is_ours(st->st_uid))
        return "another user owns it";
    if ((st->st_mode & S_IWOTH) != 0 && !sticky)
        return "all may write to it";
    if ((st->st_mode & S_IWGRP) != 0 && !sticky && st->st_gid != 0 && st->st_gid != getegid())
        return "a group may write to it";
    return NULL;
}

/* In the folder itself, sticky or not, others could make files in the way of ours. */
static const char *who_writes(const struct stat *st)
{
    if (!is_ours(st->st_uid))
        return "another user owns it";
    return (st->st_mode & (S_IWGRP | S_IWOTH)) != 0 ? "others may write to it" : NULL;
}

int private_folder(const char *what, const char *path, struct fab_err *err)
{
    char real[PATH_MAX];
    struct stat st;
    const char *why = NULL;
    if (realpath(path, real) == NULL || stat(real, &st) != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "%s %s: %s", what, path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return fab_fail(err, PMIXFAB_ERR_IO, "%s %s: cannot be one: it is no folder", what, path);
    why = who_writes(&st);
    for (char *end = strrchr(real, '/'); why == NULL && end != NULL && real[1] != '\0';
         end = strrchr(real, '/')) {
        end[end == real] = '\0';
        if (stat(real, &st) != 0)
            return fab_fail(err, PMIXFAB_ERR_IO, "%s %s: %s: %s", what, path, real, strerror(errno));
        why = who_replaces(&st);
    }
    if (why == NULL)
        return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_PERM,
                    "%s %s: %s: %s: only fabricd's user and root may (chmod go-w, chown)", what, path, real,
                    why);
}
