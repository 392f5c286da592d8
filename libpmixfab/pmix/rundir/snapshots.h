/*
 * snapshots.h - read a run directory: its present planes, and the order of their changes. The directory is
 * read again for each request. Any thread; content stays valid until it is released. The room rundir reads
 * the files that the fabricd of this host publishes.
 */
#ifndef FAB_PMIX_RUNDIR_SNAPSHOTS_H
#define FAB_PMIX_RUNDIR_SNAPSHOTS_H

#include "pmix/answers/answers.h"
#include "pmix/rundir/event_order.h"

struct rundir_snapshots;

/* PMIXFAB_ERR_NOMEM, _INVAL. */
int rundir_snapshots_new(const char *rundir, struct rundir_snapshots **out);
void rundir_snapshots_free(struct rundir_snapshots *snapshots); /* NULL is allowed */

/*
 * Call it before the first look, for a reader with objects of some planes. Files are then read even if other
 * users may write them. Changes are reported only for planes for which `wanted` returns true. `wanted` runs
 * with the lock held.
 */
void rundir_snapshots_for_objects(struct rundir_snapshots *snapshots,
                                  bool (*wanted)(const char *plane, void *cbdata), void *cbdata);

/* One generation of one plane, with a count of users. */
struct rundir_content {
    struct pmixfab *fab;
    struct pmixfab_plane plane; /* strings point into fab */
    char *path;
    uint16_t *matrix; /* these three exist while there are users; matrix is NULL for an empty plane */
    pmix_info_t *info;
    size_t ninfo;
    unsigned users;
    unsigned pins; /* users that only need the snapshot to stay */
    bool listed;   /* it is the published one */
};

/* The readable planes, the default one first, then by index. */
struct rundir_planes {
    struct rundir_snapshots *of;
    const struct pmixfab **planes;
    struct rundir_content **contents; /* the same planes, with their paths */
    uint32_t n;
};

/*
 * Look, and lock until rundir_planes_put(), also on error: then n is 0, and err has the reason. _NOTFOUND,
 * _PERM, _IO: there is no readable snapshot. _NOMEM.
 */
int rundir_planes_get(struct rundir_snapshots *snapshots, struct rundir_planes *out, struct fab_err *err);
void rundir_planes_put(struct rundir_planes *planes);

/*
 * Return the newest readable content of a plane; NULL: none. gone: the plane was removed. Call it between get
 * and put, or while no other thread looks at the snapshots.
 */
struct rundir_content *rundir_snapshots_last(const struct rundir_snapshots *snapshots, const char *plane,
                                             bool *gone);

/* Release mapped content without users or pins. The next get reads all files again. */
void rundir_snapshots_forget(struct rundir_snapshots *snapshots);

/* Keep planes[i] as it is, also after put and after a new publication. */
struct rundir_content *rundir_planes_pin(const struct rundir_planes *planes, uint32_t i);
void rundir_snapshots_unpin(struct rundir_snapshots *snapshots, struct rundir_content *content);

/*
 * Answer a request with its directives, or n queries if there are queries. The answer is independent of the
 * snapshots, which are released before the callback runs, because it may send another request. host: as in
 * struct fab_answer_set. Status PMIX_ERR_UNREACH: there is no readable snapshot, and err has the reason.
 */
void rundir_answer(struct rundir_snapshots *snapshots, const char *host, const pmix_proc_t *requestor,
                   pmix_fabric_operation_t op, const pmix_info_t *directives, const pmix_query_t *queries,
                   size_t n, struct fab_answered *out, struct fab_err *err);

/*
 * Changes, for one thread: look, then take the due steps (event_order.h) until there is none. The state of
 * the first look is known. Return whether to look again after a while in any case.
 */
bool rundir_snapshots_look(struct rundir_snapshots *snapshots);
bool rundir_snapshots_next(struct rundir_snapshots *snapshots, struct order_step *step);

/* Mark the state of this plane in the last look as known. */
void rundir_snapshots_know(struct rundir_snapshots *snapshots, const char *plane);

/* Take all steps and return whether any plane was updated. */
bool rundir_snapshots_changed(struct rundir_snapshots *snapshots);

/* ---- contents of registered objects: with the lock that the reader's owner holds for all calls ---- */

/* Add a user; the first one causes matrix and info array to be made. PMIXFAB_ERR_NOMEM. */
int rundir_content_use(struct rundir_content *content);

/*
 * As above, but change the matrix of `before` in place, which is much faster after a small change, if it
 * belongs to the caller only. The caller counts as `users` of `before`, releases all of them on success, and
 * no longer reads its matrix. Otherwise, or if that is not possible, as above.
 */
int rundir_content_use_instead(struct rundir_content *content, struct rundir_content *before, unsigned users);

/* Remove a user; the last one frees the matrix. NULL is allowed. */
void rundir_content_release(struct rundir_content *content);

/* Return the number of matrices in this process's memory. */
size_t rundir_content_matrices(void);

#endif
