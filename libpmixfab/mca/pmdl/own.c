#include "mca/pmdl/own.h"

#include <stdlib.h>
#include <string.h>

#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>

#include "mca/library/shapes.h"
#include "mca/pmdl/pmdl_component.h"
#include "pmix/answers/info.h"
#include "pmix/answers/value.h"
#include "pmix/launch/launch.h"
#include "pmix/rundir/snapshots.h"

#define STORED_KEYS "pmix.fab." /* the library keeps no foreign key that begins with "pmix" */

struct own_event {
    pmix_event_t event;
    struct rundir_snapshots *snapshots;
};

static void own_store(const char *key, const pmix_value_t *value)
{
    pmix_proc_t proc;
    pmix_kval_t kv;
    PMIX_LOAD_PROCID(&proc, pmix_globals.myid.nspace, PMIX_RANK_WILDCARD);
    PMIX_CONSTRUCT(&kv, pmix_kval_t);
    kv.key = (char *)key;
    kv.value = (pmix_value_t *)value;
    (void)mca_library_store()->store(&proc, PMIX_INTERNAL, &kv);
}

static void own_put(const pmix_info_t *infos, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bool generation = strcmp(infos[i].key, PMIXFAB_KEY_GENERATION) == 0;
        const char *key = generation ? PMIXFAB_KEY_JOB_GENERATION : infos[i].key;
        if (fab_launch_may_put(key) && (generation || strncmp(key, STORED_KEYS, strlen(STORED_KEYS)) == 0))
            own_store(key, &infos[i].value);
    }
}

/* Use the node's name in the fabric: the library searches a node's data under it. */
static void own_put_node(struct rundir_snapshots *snapshots)
{
    char *keys[] = {PMIX_FABRIC_DEVICES, PMIX_FABRIC_COORDINATES, NULL};
    const pmix_query_t query = {.keys = keys};
    struct fab_answered answered;
    struct fab_err err = {""};
    rundir_answer(snapshots, pmix_globals.hostname, &pmix_globals.myid, PMIX_FABRIC_REQUEST_INFO, NULL,
                  &query, 1, &answered, &err);
    if (answered.status == PMIX_SUCCESS && answered.n == 2) {
        pmix_info_t infos[3] = {{.value = {.type = PMIX_STRING, .data.string = pmix_globals.hostname}},
                                answered.info[0],
                                answered.info[1]};
        pmix_data_array_t facts = {.type = PMIX_INFO, .size = 3, .array = infos};
        const pmix_value_t value = {.type = PMIX_DATA_ARRAY, .data.darray = &facts};
        PMIX_LOAD_KEY(infos[0].key, PMIX_HOSTNAME);
        own_store(PMIX_NODE_INFO_ARRAY, &value);
    }
    fab_infos_free(answered.info, answered.allocated);
}

void pmdl_own_put(struct rundir_snapshots *snapshots)
{
    struct rundir_planes planes;
    struct fab_err err = {""};
    pmix_info_t *infos;
    size_t n;
    if (mca_library_store() == NULL) /* not chosen yet; the watching thread comes back */
        return;
    rundir_planes_get(snapshots, &planes, &err);
    if (planes.n > 0) {
        const struct fab_info_source source = {.fab = planes.planes[0], .path = planes.contents[0]->path};
        if (fab_info_all(&source, 0, &infos, &n) == PMIX_SUCCESS) {
            own_put(infos, n);
            fab_infos_free(infos, n);
        }
    }
    rundir_planes_put(&planes);
    own_put_node(snapshots);
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
