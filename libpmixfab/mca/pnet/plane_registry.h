/*
 * plane_registry.h - the fabric objects that a process has registered, the published planes behind them, and
 * the thread that brings changes to them.
 *
 * An object shows the content that it was given by pnet_register() or pnet_update(), until pnet_next() puts
 * a newer one in. What is shared, and what stays readable how long: docs/design/component.md.
 *
 * Threads: any. Everything is under one lock, which is never held while anybody else's code runs, and none of
 * this calls a function of the PMIx library: an update comes with that library's own lock held.
 */
#ifndef FAB_MCA_PNET_PLANE_REGISTRY_H
#define FAB_MCA_PNET_PLANE_REGISTRY_H

#include <pmix_common.h>

#include "pmix/rundir/event_order.h"
#include "topo/base/error.h"

struct pnet_registry;

/* Objects that are registered from a run directory. PMIXFAB_ERR_NOMEM or _INVAL. */
int pnet_registry_new(const char *rundir, struct pnet_registry **out);

/* Ends the watching thread and frees everything, also what is still registered; the objects themselves are
 * not touched. NULL allowed. */
void pnet_registry_free(struct pnet_registry *registry);

/*
 * Fill in an object (index, info, ninfo) with the plane that the directives name. `tag` is what the object's
 * module will hold, by which it is known even when its owner moves it; NULL: by its address only. On success
 * it belongs to the registry, which free()s it with the registration.
 *
 * PMIX_ERR_BAD_PARAM: directives that cannot be. PMIX_ERR_NOT_FOUND: a readable run directory without such a
 * plane. PMIX_ERR_UNREACH: no run directory, or nothing in it that could be read. PMIX_ERR_NOMEM. On error
 * the object is untouched and err says why.
 */
pmix_status_t pnet_register(struct pnet_registry *registry, const pmix_info_t *directives, size_t n,
                            pmix_fabric_t *fabric, void *tag, struct fab_err *err);

/*
 * Bring an object up to date and let go of what it showed before. Nothing new: it stays as it is, pointers
 * included. PMIX_ERR_BAD_PARAM: not registered here. PMIX_ERR_NOT_FOUND: its plane is gone. PMIX_ERR_UNREACH:
 * nothing could be read; PMIX_ERR_NOMEM. On error the object stays as it was.
 */
pmix_status_t pnet_update(struct pnet_registry *registry, pmix_fabric_t *fabric, struct fab_err *err);

/* Release an object and clear it. PMIX_ERR_BAD_PARAM: not registered here. */
pmix_status_t pnet_deregister(struct pnet_registry *registry, pmix_fabric_t *fabric);

/*
 * Announce a change in this process. Returns when the handlers have finished, or when it is told by other
 * means that the process has no more time. Called on the watching thread, without any lock.
 */
typedef void (*pnet_announce_fn)(bool pending, const struct order_change *change, void *cbdata);

/* Watch the run directory from now on, and announce each step of its changes. A further call does nothing.
 * PMIXFAB_ERR_NOMEM or _IO. */
int pnet_watch(struct pnet_registry *registry, pnet_announce_fn announce, void *cbdata);

struct pnet_news {
    bool pending; /* PENDING; else UPDATED: the objects of these planes show the new content by now */
    bool again;   /* look again in a while, although nothing seems to happen */
    struct order_change *changes; /* to be free()d; NULL and 0: there is no step */
    uint32_t n;
};

/*
 * Look at the run directory for the next step, in the order of event_order.h, of planes with registered
 * objects. A plane that is gone keeps what it shows. PMIXFAB_ERR_NOMEM: there is a step without changes.
 */
int pnet_next(struct pnet_registry *registry, struct pnet_news *out);

#endif
