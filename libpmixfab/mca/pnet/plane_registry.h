/*
 * plane_registry.h - the fabric objects that a process has registered, and the published planes behind them.
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

#include "pmix/rundir/published.h"
#include "topo/base/error.h"

struct pnet_registry;

/* Objects that are registered from a run directory. PMIXFAB_ERR_NOMEM or _INVAL. */
int pnet_registry_new(const char *rundir, struct pnet_registry **out);

/* Frees everything, also what is still registered; the objects themselves are not touched. NULL allowed. */
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

/* ---- for the watcher ------------------------------------------------------------------------------ */

/* Look at the run directory for what is new of planes with registered objects. Returns whether to look again
 * in a while, although nothing seems to happen. */
bool pnet_look(struct pnet_registry *registry);

/*
 * The next step of what the last look found, in the order of event_order.h; before an UPDATED is returned the
 * objects of its planes show the new content. A plane that is gone keeps what it shows. *changes is to be
 * free()d; NULL and 0: there is no step. PMIXFAB_ERR_NOMEM: the step cannot be said.
 */
int pnet_next(struct pnet_registry *registry, bool *pending, struct order_change **changes, uint32_t *n);

#endif
