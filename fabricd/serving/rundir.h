/* rundir.h - the snapshot files in the run directory: written under another name, then renamed. */
#ifndef FABRICD_SERVING_RUNDIR_H
#define FABRICD_SERVING_RUNDIR_H

#include "fabricd/serving/plane_ref.h"
#include "fabricd/serving/served.h"
#include "topo/snapshot/pending.h"

int rundir_write(const char *rundir, const char *plane, const void *bytes, size_t size, struct fab_err *err);
int rundir_commit(const char *rundir, const char *plane, struct fab_err *err);
void rundir_discard(const char *rundir, const char *plane); /* removes the output of rundir_write() */
void rundir_remove(const char *rundir, const char *plane);  /* a plane that is not served any more */

/*
 * Call these before and after a generation is put in place by the calls above. The file `pending` exists
 * meanwhile (topo/snapshot/pending.h). If it cannot be written, that is logged, and readers see the changes
 * one by one.
 */
#define RUNDIR_PENDING_NEW "." FAB_RUNDIR_PENDING ".new"
void rundir_begin(const char *rundir, uint64_t generation, const struct event_plane *planes, uint32_t n);
void rundir_end(const char *rundir);

/* Do the same as served_set_stale(), and signal it to readers of the directory by the presence of a file. */
void rundir_set_stale(const char *rundir, struct served *served, bool stale);
void rundir_mark_stale(const char *rundir, bool stale); /* the file alone */

/* Write each plane of the set whose file differs from it. On error the other planes are still written. */
int rundir_put(const char *rundir, const struct served_set *set, struct fab_err *err);

/*
 * Repair the directory while the set is served. Write each plane whose file was removed, damaged or made
 * unreadable. Also write the mark that the data are stale or not. *mended: number of planes. set and mended
 * may be NULL.
 */
int rundir_mend(const char *rundir, const struct served_set *set, bool stale, uint32_t *mended,
                struct fab_err *err);

/*
 * Return the newest generation of all snapshots in the directory; 0: there are none. Only the file heads
 * are read.
 */
uint64_t rundir_newest(const char *rundir);

/* Remove each snapshot that is not in the set, and the files of an interrupted writer, except `pending`. */
void rundir_clean(const char *rundir, const struct served_set *set);

/*
 * Load the snapshots of an earlier process: each file that is a snapshot of the plane of its name, at most
 * one for each index. The newest of them determines the set's generation and time. Other files are skipped
 * and logged.
 */
int rundir_load(const char *rundir, struct served_set **out, struct fab_err *err);

#endif
