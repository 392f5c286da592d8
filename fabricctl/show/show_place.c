/*
 * show_place.c - the hosts that a job should have, and the order of its ranks.
 */
#include "fabricctl/show/show_place.h"

#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl_text.h"
#include "fabricctl/core/source.h"
#include "fabricctl/core/table.h"
#include "fabricctl/show/fabric.h"
#include "topo/base/hostlist.h"

static const char *const objectives[] = {
    [PMIXFAB_PLACE_SUM] = "sum",
    [PMIXFAB_PLACE_MAX] = "max",
    [PMIXFAB_PLACE_SWITCHES] = "switches",
};

/* What is asked about: a plane, and hosts of it. */
struct place_question {
    const struct pmixfab *fab;
    struct pmixfab_plane plane;
    uint32_t *hosts;
    uint32_t n;
};

static enum ctl_exit place_unknown_host(const struct place_question *q, const char *list, const char *name,
                                        uint32_t others)
{
    char more[40] = "";

    if (others > 0)
        snprintf(more, sizeof more, ", nor %u more of the list", others);
    return ctl_error("no host %s: %s: plane %s does not have it%s: `fabricctl devices` lists its hosts", name,
                     list, q->plane.name, more);
}

/* The numbers of a list's hosts. `option` is where the list was given, for messages. */
static enum ctl_exit place_read_list(struct place_question *q, const char *option, const char *text)
{
    struct fab_hostlist list;
    struct fab_err err;
    const char *unknown = NULL;
    uint32_t n_unknown = 0;
    enum ctl_exit status = CTL_DONE;

    if (fab_hostlist_parse(text, &list, &err) != 0)
        return ctl_usage("%s: %s", option, err.text);
    q->hosts = calloc(list.n + (size_t)1, sizeof *q->hosts);
    if (q->hosts == NULL)
        status = ctl_nomem();
    for (uint32_t i = 0; status == CTL_DONE && i < list.n; i++)
        if (pmixfab_find_host(q->fab, list.names[i], &q->hosts[q->n]) == 0)
            q->n++;
        else if (n_unknown++ == 0)
            unknown = list.names[i];
    if (unknown != NULL)
        status = place_unknown_host(q, option, unknown, n_unknown - 1);
    else if (status == CTL_DONE && list.n == 0)
        status = ctl_usage("no hosts: %s: the list is empty", option);
    fab_hostlist_free(&list);
    return status;
}

/* Has the host a name, other than a GUID? */
static bool place_named(const struct pmixfab *fab, uint32_t host)
{
    const char *name;
    uint32_t first, n;

    return pmixfab_host(fab, host, &name, &first, &n) == 0 && !ctl_guid_name(name);
}

/*
 * q->hosts become all the others of the plane. Those that go by a GUID are left out, since no scheduler could
 * start a job there; but where no host has a name, it is GUIDs that are wanted.
 */
static enum ctl_exit place_others(struct place_question *q)
{
    bool *excluded = calloc(q->plane.n_hosts + (size_t)1, sizeof *excluded);
    uint32_t *others = malloc((q->plane.n_hosts + (size_t)1) * sizeof *others);
    uint32_t n = 0, n_nameless = 0;

    if (excluded == NULL || others == NULL) {
        free(excluded);
        free(others);
        return ctl_nomem();
    }
    for (uint32_t i = 0; i < q->n; i++)
        excluded[q->hosts[i]] = true;
    for (uint32_t h = 0; h < q->plane.n_hosts; h++) {
        if (excluded[h])
            continue;
        if (q->plane.n_unnamed == q->plane.n_hosts || place_named(q->fab, h))
            others[n++] = h;
        else
            n_nameless++;
    }
    if (n_nameless > 0)
        ctl_error("left out: %u hosts of plane %s that go by a GUID: --from takes them", n_nameless,
                  q->plane.name);
    free(excluded);
    free(q->hosts);
    q->hosts = others;
    q->n = n;
    return CTL_DONE;
}

static enum ctl_exit place_failed(const struct ctl *ctl, const struct place_question *q, int rc,
                                  const struct pmixfab_placement *placement)
{
    if (rc == PMIXFAB_ERR_NOMEM)
        return ctl_nomem();
    if (rc != PMIXFAB_ERR_NOTFOUND)
        return ctl_error("cannot place %u hosts: plane %s: %s", ctl->limit, q->plane.name,
                         pmixfab_strerror(rc));
    if (placement->n_usable >= ctl->limit)
        return ctl_error("cannot place %u hosts: plane %s: no %u of the %u hosts reach each other: see "
                         "`fabricctl check`",
                         ctl->limit, q->plane.name, ctl->limit, placement->n_usable);
    return ctl_error(
        "cannot place %u hosts: plane %s: %u can be had, and %u are down: ask for fewer, or give more "
        "to choose from",
        ctl->limit, q->plane.name, placement->n_usable, placement->n_down);
}

static enum ctl_exit place_answer(const struct ctl *ctl, struct place_question *q)
{
    struct ctl_placed placed = {.fab = q->fab, .n = ctl->limit};
    enum ctl_exit status = CTL_DONE;
    unsigned objective = 0;

    while (ctl->objective != NULL && objective < CTL_COUNT(objectives) &&
           strcmp(ctl->objective, objectives[objective]) != 0)
        objective++;
    if (objective == CTL_COUNT(objectives))
        return ctl_usage("no such objective: --objective %s: there are sum, max and switches",
                         ctl->objective);
    placed.objective = objectives[objective];
    if (q->n < ctl->limit) /* before there is memory for a slip of the keyboard */
        return ctl_error(
            "cannot place %u hosts: plane %s: there are %u to choose from: ask for fewer, or give more",
            ctl->limit, q->plane.name, q->n);
    placed.hosts = malloc(ctl->limit * sizeof *placed.hosts);
    if (placed.hosts == NULL)
        return ctl_nomem();
    const int rc = pmixfab_place(q->fab, q->hosts, q->n, ctl->limit, (enum pmixfab_objective)objective,
                                 placed.hosts, &placed.placement);
    status = rc == 0 ? ctl_placed_show(ctl, &placed) : place_failed(ctl, q, rc, &placed.placement);
    free(placed.hosts);
    return status;
}

enum ctl_exit ctl_place(const struct ctl *ctl)
{
    struct place_question q = {.hosts = NULL};
    struct ctl_view view;
    enum ctl_exit status;

    if (ctl->limit == 0)
        return ctl_usage("how many hosts: place: give -n NODES");
    if (ctl->from != NULL && ctl->exclude != NULL)
        return ctl_usage("one or the other: --from and --exclude");
    status = ctl_view_one(ctl, &view);
    if (status != CTL_DONE)
        return status;
    q.fab = view.planes[0];
    if (pmixfab_plane(q.fab, &q.plane) != 0)
        status = ctl_error("no answer: place: the snapshot contradicts itself");
    else if (ctl->from != NULL)
        status = place_read_list(&q, "--from", ctl->from);
    else if (ctl->exclude != NULL)
        status = place_read_list(&q, "--exclude", ctl->exclude);
    if (status == CTL_DONE && ctl->from == NULL)
        status = place_others(&q);
    if (status == CTL_DONE)
        status = place_answer(ctl, &q);
    free(q.hosts);
    ctl_view_close(&view);
    return status;
}

/* The name of the first host that is in the list twice. */
static const char *place_twice(const struct place_question *q)
{
    bool *seen = calloc(q->plane.n_hosts + (size_t)1, sizeof *seen);
    const char *name = NULL;
    uint32_t first, n;

    for (uint32_t i = 0; i < q->n && seen != NULL && name == NULL; i++) {
        if (seen[q->hosts[i]])
            pmixfab_host(q->fab, q->hosts[i], &name, &first, &n);
        seen[q->hosts[i]] = true;
    }
    free(seen);
    return name;
}

enum ctl_exit ctl_order(const struct ctl *ctl)
{
    struct place_question q = {.hosts = NULL};
    struct ctl_view view;
    enum ctl_exit status = ctl_view_one(ctl, &view);

    if (status != CTL_DONE)
        return status;
    q.fab = view.planes[0];
    status = pmixfab_plane(q.fab, &q.plane) == 0
                 ? place_read_list(&q, "the list", ctl->args[0])
                 : ctl_error("no answer: order: the snapshot contradicts itself");
    if (status == CTL_DONE) {
        const char *twice = place_twice(&q);
        const struct ctl_placed placed = {.fab = q.fab, .hosts = q.hosts, .n = q.n};

        if (twice != NULL)
            status = ctl_error("twice in the list: %s: give each host once", twice);
        else if (pmixfab_order(q.fab, q.hosts, q.n) != 0)
            status = ctl_nomem();
        else
            status = ctl_placed_show(ctl, &placed);
    }
    free(q.hosts);
    ctl_view_close(&view);
    return status;
}
