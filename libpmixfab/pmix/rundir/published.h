/*
 * published.h - the planes of a run directory, looked at again and again: a file is opened and checked when
 * it is new, and known by its inode afterwards.
 *
 * The room rundir reads what the fabricd of this host publishes.
 * Not locked: the reader's lock covers it (snapshots.h).
 */
#ifndef FAB_PMIX_RUNDIR_PUBLISHED_H
#define FAB_PMIX_RUNDIR_PUBLISHED_H

#include <sys/stat.h>

#include "pmix/rundir/content.h"
#include "pmix/rundir/event_order.h"

struct pnet_plane {
    struct pnet_plane *prev, *next;
    char name[64];
    struct stat file; /* Publishers rename whole new files into place, so another content is another inode. */
    struct pnet_content *content; /* the last one that could be read; NULL: none yet */
    bool seen;                    /* by the refresh that is under way */
    bool readable;                /* the file is there and good: content is what it holds */
    bool gone;                    /* the plane is no more: its file is missing among newer ones */
};

struct pnet_published {
    char *rundir; /* the owner's, with the structure */
    /* Nothing is believed that others than root and the service's user may write: published.c, "trust". */
    bool trusted_only;
    uid_t service; /* the service's user, as the last refresh found it */
    struct pnet_plane *planes;
    struct fab_pending pending; /* what the last refresh found in it */
};

/*
 * Look again. PMIXFAB_ERR_NOTFOUND, _PERM (or it is not trusted), _IO: the directory cannot be read; nothing
 * is readable then. Files that are no good are logged and skipped.
 */
int pnet_published_refresh(struct pnet_published *published, struct fab_err *err);

/* For the order of events: what the last refresh found of the planes that `wanted` says (NULL: of all).
 * Nothing, where the directory cannot be read. PMIXFAB_ERR_NOMEM. */
int pnet_published_look(const struct pnet_published *published, struct event_order *order,
                        bool (*wanted)(const char *plane, void *cbdata), void *cbdata);

/* A plane for the order of events. It has content. */
struct order_plane pnet_plane_order(const struct pnet_plane *plane);

/* By name; NULL: never seen. */
struct pnet_plane *pnet_published_find(const struct pnet_published *published, const char *name);

/* Forget what is published and has no users; called when the last object is gone. */
void pnet_published_forget(struct pnet_published *published);

#endif
