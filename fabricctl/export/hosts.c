/*
 * hosts.c - lists: hosts for launchers, near ones next to each other, and names of nodes for
 * infiniband-diags.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/export/export.h"
#include "topo/base/hostlist.h"

/* ---- lists for launchers: neighbours in the list are near each other in the fabric ---- */

/*
 * Return the hosts of the list on the command line, or all: numbers, in the order of pmixfab_order(). NULL:
 * with a message.
 */
static uint32_t *hosts_in_order(struct ctl_export *x, const struct pmixfab_plane *plane, size_t *n)
{
    const char *text = x->ctl->n_args > 1 ? x->ctl->args[1] : NULL;
    const struct pmixfab *fab = x->view->planes[0];
    struct fab_hostlist list = {0};
    struct fab_err err = {{0}};
    enum ctl_exit status = CTL_DONE;
    uint32_t *hosts = NULL;
    *n = plane->n_hosts;
    if (text != NULL && fab_hostlist_parse(text, &list, &err) != 0)
        status = ctl_error("%s: %.200s", err.text, text);
    else if (text != NULL)
        *n = list.n;
    if (status == CTL_DONE && *n == 0)
        status = ctl_error("nothing to write: plane %s: no host", plane->name);
    if (status == CTL_DONE)
        hosts = malloc((*n + 1) * sizeof *hosts);
    for (size_t i = 0; hosts != NULL && i < *n; i++)
        hosts[i] = (uint32_t)i;
    for (uint32_t i = 0; hosts != NULL && status == CTL_DONE && i < list.n; i++)
        if (pmixfab_find_host(fab, list.names[i], &hosts[i]) != 0)
            status = ctl_error("no host %s: plane %s: see fabricctl devices", list.names[i], plane->name);
    fab_hostlist_free(&list);
    if (status == CTL_DONE && (hosts == NULL || pmixfab_order(fab, hosts, *n) != 0))
        status = ctl_error("no order: plane %s: a host is in the list twice, or memory ran out", plane->name);
    if (status == CTL_DONE)
        return hosts;
    free(hosts);
    return NULL;
}

/* Return whether no device of the host is up: no job can use it, although its place is kept. */
static bool host_is_down(const struct pmixfab *fab, uint32_t first, uint32_t n)
{
    struct pmixfab_device device;
    for (uint32_t d = first; d < first + n; d++)
        if (pmixfab_device(fab, d, &device) != 0 || device.state != PMIXFAB_STATE_DOWN)
            return false;
    return n > 0;
}

static void tell_down(const char *const *names, size_t n, bool listed)
{
    char *list = n > 0 ? fab_hostlist_fold(names, n) : NULL;
    if (list != NULL)
        ctl_error("%zu host%s down or missing%s: %.200s", n, n == 1 ? " is" : "s are",
                  listed ? ", and in the list" : ", left out", list);
    free(list);
}

/*
 * Return their names, without hosts that are down unless the list names them. The names belong to the plane;
 * the caller frees the array. NULL: with a message.
 */
static const char **names_in_order(struct ctl_export *x, size_t *n)
{
    struct pmixfab_plane plane;
    uint32_t *hosts, first, devices;
    const char **names = NULL, **down;
    const bool listed = x->ctl->n_args > 1;
    size_t kept = 0, n_down = 0;
    if (pmixfab_plane(x->view->planes[0], &plane) != 0) {
        ctl_export_contradicts();
        return NULL;
    }
    hosts = hosts_in_order(x, &plane, n);
    if (hosts == NULL)
        return NULL;
    names = calloc(*n + 1, sizeof *names);
    down = calloc(*n + 1, sizeof *down);
    for (size_t i = 0; names != NULL && down != NULL && i < *n; i++) {
        if (pmixfab_host(x->view->planes[0], hosts[i], &names[kept], &first, &devices) != 0)
            continue;
        if (host_is_down(x->view->planes[0], first, devices)) {
            down[n_down++] = names[kept];
            if (!listed)
                continue;
        }
        if (ctl_reserved_name(x->reserved, names[kept]))
            ctl_export_lost(x, "host %s: its name is a reserved word there, left out", names[kept]);
        else if (ctl_plain_name(names[kept], SIZE_MAX))
            kept++;
        else
            ctl_export_lost(x, "host %s: the format of the list does not allow its name, left out",
                            names[kept]);
    }
    *n = kept;
    if (names == NULL || down == NULL)
        ctl_nomem();
    else
        tell_down(down, n_down, listed);
    if (kept == 0 && n_down > 0)
        ctl_error("nothing to write: plane %s: no host is up", plane.name);
    if (down == NULL || (kept == 0 && n_down > 0)) {
        free(names);
        names = NULL;
    }
    free(down);
    free(hosts);
    return names;
}

enum ctl_exit ctl_export_hostlist(struct ctl_export *x)
{
    size_t n;
    const char **names = names_in_order(x, &n);
    char *list = names != NULL ? fab_hostlist_fold(names, n) : NULL;
    enum ctl_exit status = list != NULL ? CTL_DONE : CTL_FAILED;
    if (names != NULL && list == NULL)
        status = ctl_nomem();
    if (list != NULL)
        fprintf(x->out, "%s\n", list);
    free(list);
    free(names);
    return status;
}

enum ctl_exit ctl_export_rankfile(struct ctl_export *x)
{
    size_t n;
    const char **names = names_in_order(x, &n);
    if (names == NULL)
        return CTL_FAILED;
    for (size_t i = 0; i < n; i++)
        fprintf(x->out, "rank %zu=%s slot=0\n", i, names[i]);
    free(names);
    return CTL_DONE;
}

/* ---- coordinates for MPICH: a line for each rank ---- */

#define COORDS 3 /* group, switch, port: MPICH reads no other number */

/* Write the coordinates of the host's first device that is up, as its launch information has them. */
static void put_rank(struct ctl_export *x, size_t rank, const char *name, uint32_t host)
{
    const struct pmixfab *fab = x->view->planes[0];
    struct pmixfab_device device;
    uint32_t first, n, dims = 0, at = UINT32_MAX;
    const uint32_t *coords = NULL;
    if (pmixfab_host(fab, host, &name, &first, &n) == 0 && n > 0)
        at = first;
    for (uint32_t d = first; at != UINT32_MAX && d < first + n; d++)
        if (pmixfab_device(fab, d, &device) == 0 && device.state == PMIXFAB_STATE_UP) {
            at = d;
            break;
        }
    if (at != UINT32_MAX && pmixfab_coords(fab, at, PMIXFAB_LOGICAL, &coords, &dims) == 0 && dims == COORDS)
        fprintf(x->out, "%zu: %u %u %u\n", rank, coords[0], coords[1], coords[2]);
    else {
        ctl_export_lost(x, "host %s: it has no coordinates: MPICH gets -1", name);
        fprintf(x->out, "%zu: -1 -1 -1\n", rank);
    }
}

/* Return the number of ranks on each host of "LIST:N", and cut the list there; 0: with a message. */
static uint32_t ranks_of_each(char *list)
{
    char *colon = strrchr(list, ':'), *end;
    if (colon == NULL)
        return 1;
    const unsigned long n = strtoul(colon + 1, &end, 10);
    if (colon[1] < '1' || colon[1] > '9' || *end != '\0' || n > FAB_HOSTLIST_MAX) {
        ctl_error("%.200s: after the colon is no number of ranks", list);
        return 0;
    }
    *colon = '\0';
    return (uint32_t)n;
}

/* The hosts of the list in its order, which may have a host several times, each with its ranks one after the
 * other. */
static enum ctl_exit put_listed(struct ctl_export *x, const char *text)
{
    struct fab_hostlist list = {0};
    struct fab_err err = {{0}};
    char *own = strdup(text);
    const uint32_t n = own != NULL ? ranks_of_each(own) : 0;
    enum ctl_exit status = own == NULL ? ctl_nomem() : n == 0 ? CTL_FAILED : CTL_DONE;
    if (status == CTL_DONE && fab_hostlist_parse(own, &list, &err) != 0)
        status = ctl_error("%s: %.200s", err.text, own);
    if (status == CTL_DONE && (uint64_t)list.n * n > FAB_HOSTLIST_MAX)
        status = ctl_error("%.200s: more than %u ranks", text, (unsigned)FAB_HOSTLIST_MAX);
    for (uint32_t i = 0; status == CTL_DONE && i < list.n; i++) {
        uint32_t host;
        if (pmixfab_find_host(x->view->planes[0], list.names[i], &host) != 0)
            status = ctl_error("no host %s: see fabricctl devices", list.names[i]);
        for (uint32_t r = 0; status == CTL_DONE && r < n; r++)
            put_rank(x, (size_t)i * n + r, list.names[i], host);
    }
    fab_hostlist_free(&list);
    free(own);
    return status;
}

enum ctl_exit ctl_export_mpich_coords(struct ctl_export *x)
{
    struct pmixfab_plane plane;
    const char **names;
    uint32_t host;
    size_t n;
    if (pmixfab_plane(x->view->planes[0], &plane) != 0)
        return ctl_export_contradicts();
    if (plane.dims != COORDS)
        return ctl_error("nothing to write: plane %s: its coordinates have %u numbers, and MPICH reads %d",
                         plane.name, plane.dims, COORDS);
    if (x->ctl->n_args > 1)
        return put_listed(x, x->ctl->args[1]);
    names = names_in_order(x, &n);
    for (size_t i = 0; names != NULL && i < n; i++)
        if (pmixfab_find_host(x->view->planes[0], names[i], &host) == 0)
            put_rank(x, i, names[i], host);
    free(names);
    return names != NULL ? CTL_DONE : CTL_FAILED;
}

/* ---- node-name-map of OpenSM and infiniband-diags: a line for each switch and HCA ---- */

static void put_mapped(struct ctl_export *x, uint64_t guid, const char *name, const char *more)
{
    if (strchr(name, '"') != NULL || strchr(more, '"') != NULL)
        ctl_export_lost(x, "node 0x%016" PRIx64 ": its name %s contains a quote, left out", guid, name);
    else
        fprintf(x->out, "0x%016" PRIx64 " \"%s%s%s\"\n", guid, name, more[0] != '\0' ? " " : "", more);
}

enum ctl_exit ctl_export_nodemap(struct ctl_export *x)
{
    for (size_t i = 0; i < x->view->n; i++) {
        const struct pmixfab *fab = x->view->planes[i];
        struct pmixfab_plane plane;
        struct pmixfab_switch sw;
        struct pmixfab_device device;
        uint64_t before = 0;
        if (pmixfab_plane(fab, &plane) != 0)
            return ctl_export_contradicts();
        for (uint32_t s = 0; s < plane.n_switches; s++)
            if (pmixfab_switch(fab, s, &sw) == 0 && sw.guid != 0)
                put_mapped(x, sw.guid, sw.name, "");
        /* ports of one HCA are neighbours */
        for (uint32_t d = 0; d < plane.n_devices; d++)
            if (pmixfab_device(fab, d, &device) == 0 && device.node_guid != 0 && device.node_guid != before) {
                before = device.node_guid;
                put_mapped(x, device.node_guid, device.host, device.name);
            }
    }
    return CTL_DONE;
}
