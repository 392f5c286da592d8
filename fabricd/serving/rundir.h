/* rundir.h - the snapshot files in the run directory: written beside, put in place by renaming. */
#ifndef FABRICD_SERVING_RUNDIR_H
#define FABRICD_SERVING_RUNDIR_H

#include "fabricd/serving/plane_ref.h"
#include "fabricd/serving/served.h"
#include "topo/snapshot/pending.h"

int rundir_write(const char *rundir, const char *plane, const void *bytes, size_t size, struct fab_err *err);
int rundir_commit(const char *rundir, const char *plane, struct fab_err *err);
void rundir_discard(const char *rundir, const char *plane); /* what rundir_write() wrote */
void rundir_remove(const char *rundir, const char *plane);  /* a plane that is served no more */

/*
 * Before and after a generation is put in place, by the calls above: the file `pending` says so meanwhile
 * (topo/snapshot/pending.h). Where it cannot be written, a line in the log, and readers see the changes as
 * they come.
 */
#define RUNDIR_PENDING_NEW "." FAB_RUNDIR_PENDING ".new"
void rundir_begin(const char *rundir, uint64_t generation, const struct event_plane *planes, uint32_t n);
void rundir_end(const char *rundir);

/* As served_set_stale(), and told to those who read the directory, by a file that is there or is not. */
void rundir_set_stale(const char *rundir, struct served *served, bool stale);
void rundir_mark_stale(const char *rundir, bool stale); /* the file alone */

/* Write each plane of the set whose file is not as it is served. On error the others are written all the
 * same. */
int rundir_put(const char *rundir, const struct served_set *set, struct fab_err *err);

/*
 * The same while it is served: write again each served plane whose file was removed, damaged or hidden from
 * readers, and whether it is stale. *mended: how many planes. set and mended may be NULL.
 */
int rundir_mend(const char *rundir, const struct served_set *set, bool stale, uint32_t *mended,
                struct fab_err *err);

/* The newest generation of all snapshots there; 0: there is none. Their heads alone are read. */
uint64_t rundir_newest(const char *rundir);

/* Remove every snapshot that is not in the set, and what an interrupted writer left but `pending`. */
void rundir_clean(const char *rundir, const struct served_set *set);

/*
 * What stands there from before: every file that is a snapshot of its name's plane, no two of one index; the
 * newest of them says the set's generation and time. Others are left out, with a line in the log.
 */
int rundir_load(const char *rundir, struct served_set **out, struct fab_err *err);

#endif
