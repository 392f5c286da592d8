#include "pmix/rundir/snapshot_answers.h"

#include <stdlib.h>

/* The planes as the answers take them; free() it. */
static struct fab_answer_plane *planes_to_answer(const struct rundir_planes *planes)
{
    struct fab_answer_plane *list = calloc((size_t)planes->n + 1, sizeof(*list));
    for (uint32_t i = 0; list != NULL && i < planes->n; i++) {
        list[i].fab = planes->planes[i];
        list[i].path = planes->contents[i]->path;
        list[i].info = planes->contents[i]->plane;
    }
    return list;
}

void rundir_answer(struct rundir_snapshots *snapshots, const char *host, const pmix_proc_t *requestor,
                   pmix_fabric_operation_t op, const pmix_info_t *directives, const pmix_query_t *queries,
                   size_t n, struct fab_answered *out, struct fab_err *err)
{
    struct rundir_planes planes;
    rundir_planes_get(snapshots, &planes, err);
    struct fab_answer_plane *list = planes_to_answer(&planes);
    const struct fab_answer_set set = {.planes = list, .n = planes.n, .stale = -1, .host = host};
    *out = (struct fab_answered){.status = list == NULL ? PMIX_ERR_NOMEM : PMIX_ERR_UNREACH};
    if (list != NULL && planes.n > 0 && queries != NULL)
        fab_answer_query(&set, queries, n, out);
    else if (list != NULL && planes.n > 0)
        fab_answer_fabric(&set, requestor, op, directives, n, out);
    free(list);
    rundir_planes_put(&planes);
}
