/*
 * folder_watch.h - a descriptor that is readable when something has happened in a run directory, or to it.
 *
 * Its events say that it is worth looking, and no more: after an overflow nothing is lost. Not locked.
 */
#ifndef FAB_TOPO_SNAPSHOT_FOLDER_WATCH_H
#define FAB_TOPO_SNAPSHOT_FOLDER_WATCH_H

#include <stdbool.h>

struct fab_folder_watch {
    char *folder, *parent;
    const char *name; /* of the folder in its parent; NULL: not known */
    int inotify;      /* the descriptor */
    int wd, above;    /* watches of the two, negative: none */
};

/* Nothing is watched yet. PMIXFAB_ERR_NOMEM, or _IO with errno: the system has no such descriptor. On error
 * there is nothing to close. */
int fab_folder_watch_open(const char *folder, struct fab_folder_watch *out);
void fab_folder_watch_close(struct fab_folder_watch *watch);

/* Watch what the folder's name stands for now; before each look. False, with errno: neither it nor its parent
 * can be watched. */
bool fab_folder_watch_arm(struct fab_folder_watch *watch);

/* Read all events. True: one of them was about the folder. */
bool fab_folder_watch_drain(const struct fab_folder_watch *watch);

#endif
