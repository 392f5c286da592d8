/*
 * plane_registry.h - the fabric objects that a process has registered, the published planes behind them, and
 * the thread that updates them.
 *
 * An object shows the content of pnet_register() or pnet_update(), until pnet_next() replaces it by a newer
 * one. Sharing and lifetimes: docs/design/component.md.
 *
 * Threads: any. Everything is under one lock, which is never held while foreign code runs. No function of the
 * PMIx library is called here, because an update arrives with that library's own lock held.
 */
#ifndef FAB_MCA_PNET_PLANE_REGISTRY_H
#define FAB_MCA_PNET_PLANE_REGISTRY_H

#include <pmix_common.h>

#include "pmix/rundir/event_order.h"
#include "topo/base/error.h"

struct pnet_registry;

/* Make a registry for a run directory. PMIXFAB_ERR_NOMEM or _INVAL. */
int pnet_registry_new(const char *rundir, struct pnet_registry **out);

/*
 * End the watching thread and free everything, registered objects included; the objects themselves are not
 * touched. NULL is allowed.
 */
void pnet_registry_free(struct pnet_registry *registry);

/* The content of an object's module. */
struct pnet_tag {
    void *tag;
    void (*free)(
        void *tag); /* called at the end of the registration; NULL: the tag belongs to somebody else */
};

/*
 * Fill in an object (index, info, ninfo) with the plane that the directives name. `tag` becomes the content
 * of the object's module. The registry recognises the object by the tag, even if the owner moves the object.
 * With a NULL tag, it recognises the object by its address only. On success the tag belongs to the registry.
 *
 * PMIX_ERR_BAD_PARAM: invalid directives. PMIX_ERR_NOT_FOUND: a readable run directory without such a plane.
 * PMIX_ERR_UNREACH: no run directory, or nothing readable in it. PMIX_ERR_NOMEM. On error the object is
 * unchanged and err has the reason.
 */
pmix_status_t pnet_register(struct pnet_registry *registry, const pmix_info_t *directives, size_t n,
                            pmix_fabric_t *fabric, const struct pnet_tag *tag, struct fab_err *err);

/*
 * Bring an object up to date and release its former content. Without a change it stays as it is, pointers
 * included. PMIX_ERR_BAD_PARAM: not registered here. PMIX_ERR_NOT_FOUND: its plane was removed.
 * PMIX_ERR_UNREACH: nothing could be read; PMIX_ERR_NOMEM. On error the object is unchanged.
 */
pmix_status_t pnet_update(struct pnet_registry *registry, pmix_fabric_t *fabric, struct fab_err *err);

/* Release an object and clear it. PMIX_ERR_BAD_PARAM: not registered here. */
pmix_status_t pnet_deregister(struct pnet_registry *registry, pmix_fabric_t *fabric);

/*
 * Announce a change in this process. Returns when the handlers have finished, or when the process ends.
 * Called on the watching thread, without any lock.
 */
typedef void (*pnet_announce_fn)(bool pending, const struct order_change *change, void *cbdata);

/*
 * Watch the run directory from now on, and announce each step of its changes. A second call does nothing.
 * PMIXFAB_ERR_NOMEM or _IO.
 */
int pnet_watch(struct pnet_registry *registry, pnet_announce_fn announce, void *cbdata);

struct pnet_news {
    bool pending; /* PENDING; else UPDATED: the objects of these planes show the new content already */
    bool again;   /* look again after a while, even without an event */
    struct order_change *changes; /* to be freed with free(); NULL and 0: there is no step */
    uint32_t n;
};

/*
 * Find the next step in the run directory, in the order of event_order.h, for planes with registered objects.
 * The objects of a removed plane keep their content. PMIXFAB_ERR_NOMEM: there is a step without changes.
 */
int pnet_next(struct pnet_registry *registry, struct pnet_news *out);

#endif
