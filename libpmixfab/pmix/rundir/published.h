/*
 * published.h - the planes of a run directory, looked at again and again: a file is opened and checked when
 * it is new, and known by its inode afterwards.
 *
 * The room rundir holds what the component reads of the host's fabricd: its published files.
 * Not locked: the registry's lock covers it.
 */
#ifndef FAB_PMIX_RUNDIR_PUBLISHED_H
#define FAB_PMIX_RUNDIR_PUBLISHED_H

#include <sys/stat.h>

#include "pmix/answers/request.h"
#include "pmix/rundir/content.h"

struct pnet_plane {
    struct pnet_plane *prev, *next;
    char name[64];
    struct stat file; /* Publishers rename whole new files into place, so another content is another inode. */
    struct pnet_content *content; /* the last one that could be read; NULL: none yet */
    bool seen;                    /* by the refresh that is under way */
    bool readable;                /* the file is there and good: content is what it holds */
    bool gone;                    /* the plane is no more: its file is missing among newer ones */
    /* kept by the registry: what its objects were told of last */
    uint64_t told_generation;
    int64_t told_published;
    bool told_gone;
    struct pnet_content *ready; /* to be switched in; counted as a user */
};

struct pnet_published {
    char *rundir; /* the owner's, with the structure */
    /* Nothing is believed that others than root and the service's user may write: published.c, "trust". */
    bool trusted_only;
    uid_t service; /* the service's user, as the last refresh found it */
    struct pnet_plane *planes;
};

/*
 * Look again. PMIXFAB_ERR_NOTFOUND, _PERM (or it is not trusted), _IO: the directory cannot be read; nothing
 * is readable then. Files that are no good are logged and skipped.
 */
int pnet_published_refresh(struct pnet_published *published, struct fab_err *err);

/* Of the readable planes the one that is asked for: the default one if it matches, else by index. An empty
 * request is for the default plane. NULL: none. */
struct pnet_plane *pnet_published_select(const struct pnet_published *published,
                                         const struct fab_request *request);

/* By name; NULL: never seen. */
struct pnet_plane *pnet_published_find(const struct pnet_published *published, const char *name);

/* Forget what is published and has no users; called when the last object is gone. */
void pnet_published_forget(struct pnet_published *published);

#endif
