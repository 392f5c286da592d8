/*
 * folder_watch.h - a descriptor that is readable after an event in a run directory, or of the directory
 * itself.
 *
 * Events only trigger a scan, so an overflow loses nothing. No locks.
 */
#ifndef FAB_TOPO_SNAPSHOT_FOLDER_WATCH_H
#define FAB_TOPO_SNAPSHOT_FOLDER_WATCH_H

#include <stdbool.h>

struct fab_folder_watch {
    char *folder, *parent;
    const char *name; /* of the folder in its parent; NULL: unknown */
    int inotify;      /* the descriptor */
    int wd, above;    /* watches of the two, negative: none */
};

/*
 * Open a watch that watches nothing yet. PMIXFAB_ERR_NOMEM, or _IO with errno: the system has no such
 * descriptor. On error there is nothing to close.
 */
int fab_folder_watch_open(const char *folder, struct fab_folder_watch *out);
void fab_folder_watch_close(struct fab_folder_watch *watch);

/*
 * Watch the folder that the name refers to now; call it before each scan. Return false, with errno, if
 * neither the folder nor its parent can be watched.
 */
bool fab_folder_watch_arm(struct fab_folder_watch *watch);

/* Read all events. Return whether one of them was about the folder. */
bool fab_folder_watch_drain(const struct fab_folder_watch *watch);

#endif
