/*
 * snapshots.h - the one reader of a run directory: its planes as they are now, and the order of their
 * changes. The directory is read again whenever its planes are asked for. Any thread; what was handed out
 * stays until it is given back. The room rundir reads what the fabricd of this host publishes.
 */
#ifndef FAB_PMIX_RUNDIR_SNAPSHOTS_H
#define FAB_PMIX_RUNDIR_SNAPSHOTS_H

#include "pmix/answers/answers.h"
#include "pmix/rundir/event_order.h"

struct rundir_snapshots;

/* PMIXFAB_ERR_NOMEM, _INVAL. */
int rundir_snapshots_new(const char *rundir, struct rundir_snapshots **out);
void rundir_snapshots_free(struct rundir_snapshots *snapshots); /* NULL allowed */

/*
 * Before the first look, for a reader that has objects of some planes: read files whoever may write them, and
 * report changes only of planes for which `wanted` returns true. `wanted` runs with the lock held.
 */
void rundir_snapshots_for_objects(struct rundir_snapshots *snapshots,
                                  bool (*wanted)(const char *plane, void *cbdata), void *cbdata);

/* One generation of one plane; counted. */
struct rundir_content {
    struct pmixfab *fab;
    struct pmixfab_plane plane; /* strings point into fab */
    char *path;
    uint16_t *matrix; /* these three while there are users; matrix NULL on an empty plane */
    pmix_info_t *info;
    size_t ninfo;
    unsigned users;
    unsigned pins; /* who only need the snapshot to stay */
    bool listed;   /* it is what is published now */
};

/* Planes that are readable, the default one first, then by index. */
struct rundir_planes {
    struct rundir_snapshots *of;
    const struct pmixfab **planes;
    struct rundir_content **contents; /* the same planes, with their paths */
    uint32_t n;
};

/* Looks, and locks until rundir_planes_put(), also on an error: then n is 0, and err says why. _NOTFOUND,
 * _PERM, _IO: no readable snapshot is there. _NOMEM. */
int rundir_planes_get(struct rundir_snapshots *snapshots, struct rundir_planes *out, struct fab_err *err);
void rundir_planes_put(struct rundir_planes *planes);

/* The newest content of a plane that could be read; NULL: none. gone: the plane is no more. Between get and
 * put, or where no other thread looks. */
struct rundir_content *rundir_snapshots_last(const struct rundir_snapshots *snapshots, const char *plane,
                                             bool *gone);

/* Release what is mapped and has no users or pins. The next get reads all files anew. */
void rundir_snapshots_forget(struct rundir_snapshots *snapshots);

/* planes[i] stays as it is, also when it was put back and something else is published. */
struct rundir_content *rundir_planes_pin(const struct rundir_planes *planes, uint32_t i);
void rundir_snapshots_unpin(struct rundir_snapshots *snapshots, struct rundir_content *content);

/*
 * Answer a request with its directives, or n queries where there are queries. The answer holds nothing of the
 * snapshots: these are given back before anybody is called back, who may ask again. host: as in struct
 * fab_answer_set. Status PMIX_ERR_UNREACH: there is no snapshot that can be read, and err says why.
 */
void rundir_answer(struct rundir_snapshots *snapshots, const char *host, const pmix_proc_t *requestor,
                   pmix_fabric_operation_t op, const pmix_info_t *directives, const pmix_query_t *queries,
                   size_t n, struct fab_answered *out, struct fab_err *err);

/*
 * Changes, for one thread: look, then take the steps that are due (event_order.h) until there is none. What
 * the first look finds is known. Returns whether to look again in a while, whatever happens.
 */
bool rundir_snapshots_look(struct rundir_snapshots *snapshots);
bool rundir_snapshots_next(struct rundir_snapshots *snapshots, struct order_step *step);

/* What the last look found of this plane is known from here on. */
void rundir_snapshots_know(struct rundir_snapshots *snapshots, const char *plane);

/* Take all steps: has any plane been updated? */
bool rundir_snapshots_changed(struct rundir_snapshots *snapshots);

/* ---- contents of registered objects: with the lock that the reader's owner has around all calls ---- */

/* One user more; the first has matrix and info array made. PMIXFAB_ERR_NOMEM. */
int rundir_content_use(struct rundir_content *content);

/*
 * The same, with the matrix of `before` changed in its place, which is much faster after a small change,
 * where it is nobody's but the caller's, who counts as `users` of `before`, lets go of all of them if this
 * succeeds, and looks at its matrix no more. Else, or where that cannot be done, as above.
 */
int rundir_content_use_instead(struct rundir_content *content, struct rundir_content *before, unsigned users);

/* One user less; the last takes the matrix along. NULL allowed. */
void rundir_content_release(struct rundir_content *content);

/* Matrices in memory in this process. */
size_t rundir_content_matrices(void);

#endif
