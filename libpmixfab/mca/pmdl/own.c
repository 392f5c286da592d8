#include "mca/pmdl/own.h"

#include <stdlib.h>
#include <string.h>

#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>

#include "mca/library/shapes.h"
#include "mca/pmdl/component.h"
#include "pmix/values/info.h"
#include "pmix/values/value.h"

#define STORED_KEYS "pmix.fab." /* the library keeps none that begins with "pmix" and is not its own */

struct own_event {
    pmix_event_t event;
    struct rundir_snapshots *snapshots;
};

static void own_put(const pmix_info_t *infos, size_t n)
{
    pmix_proc_t proc;
    if (mca_library_store() == NULL) /* not yet chosen; the watching thread comes back */
        return;
    PMIX_LOAD_PROCID(&proc, pmix_globals.myid.nspace, PMIX_RANK_WILDCARD);
    for (size_t i = 0; i < n; i++) {
        bool generation = strcmp(infos[i].key, PMIXFAB_KEY_GENERATION) == 0;
        pmix_kval_t kv;
        if (!generation && strncmp(infos[i].key, STORED_KEYS, strlen(STORED_KEYS)) != 0)
            continue;
        PMIX_CONSTRUCT(&kv, pmix_kval_t);
        kv.key = generation ? (char *)PMIXFAB_KEY_JOB_GENERATION : (char *)infos[i].key;
        kv.value = (pmix_value_t *)&infos[i].value;
        (void)mca_library_store()->store(&proc, PMIX_INTERNAL, &kv);
    }
}

void pmdl_own_put(struct rundir_snapshots *snapshots)
{
    struct rundir_planes planes;
    struct fab_err err = {""};
    pmix_info_t *infos;
    size_t n;
    rundir_planes_get(snapshots, &planes, &err);
    if (planes.n > 0) {
        const struct fab_info_source source = {.fab = planes.planes[0], .path = planes.paths[0]};
        if (fab_info_all(&source, 0, &infos, &n) == PMIX_SUCCESS) {
            own_put(infos, n);
            fab_infos_free(infos, n);
        }
    }
    rundir_planes_put(&planes);
}

/* On the library's thread. */
static void own_on_event(int fd, short what, void *arg)
{
    struct own_event *own = arg;
    (void)fd, (void)what;
    pmdl_own_put(own->snapshots);
    free(own);
}

void pmdl_own_tell(struct rundir_snapshots *snapshots)
{
    struct own_event *own = calloc(1, sizeof(*own));
    if (own == NULL)
        return;
    own->snapshots = snapshots;
    pmix_event_assign(&own->event, pmix_globals.evbase, -1, EV_WRITE, own_on_event, own);
    pmix_event_active(&own->event, EV_WRITE, 1);
}
