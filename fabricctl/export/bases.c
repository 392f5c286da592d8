/* bases.c - at which of its leaves a host stands. */
#include "fabricctl/export/bases.h"

#include <stdlib.h>
#include <string.h>

#include "topo/base/pattern.h"

#define NONE UINT32_MAX

/* ---- what is chosen ---- */

static bool device_is_chosen(const struct ctl *ctl, const struct pmixfab *fab, uint32_t index)
{
    struct pmixfab_device device;
    struct pmixfab_switch sw = {.name = NULL};
    char with_port[320];

    if (ctl->interface == NULL)
        return pmixfab_fact_text(fab, index, "compute") != NULL;
    if (pmixfab_device(fab, index, &device) != 0)
        return false;
    if (device.switch_index != NONE && pmixfab_switch(fab, device.switch_index, &sw) != 0)
        sw.name = NULL;
    snprintf(with_port, sizeof with_port, "%s:%u", device.name, device.port);
    const char *const names[] = {device.name, with_port, pmixfab_fact_text(fab, index, "interface"), sw.name};

    return fab_pattern_has(ctl->interface, names, sizeof names / sizeof names[0]);
}

static int bases_compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum ctl_exit ctl_bases_choose(struct ctl_export *x)
{
    struct pmixfab_plane plane;
    const char *name;
    uint32_t first, n;
    size_t room = 1;

    for (size_t i = 0; i < x->view->n; i++)
        room += pmixfab_plane(x->view->planes[i], &plane) == 0 ? plane.n_hosts : 0;
    x->chosen = malloc(room * sizeof *x->chosen);
    if (x->chosen == NULL)
        return ctl_nomem();
    for (size_t i = 0; i < x->view->n; i++) {
        const struct pmixfab *fab = x->view->planes[i];

        for (uint32_t h = 0; pmixfab_host(fab, h, &name, &first, &n) == 0; h++)
            for (uint32_t d = first; d < first + n; d++)
                if (device_is_chosen(x->ctl, fab, d)) {
                    x->chosen[x->n_chosen++] = name;
                    break;
                }
    }
    qsort(x->chosen, x->n_chosen, sizeof *x->chosen, bases_compare_names);
    if (x->ctl->interface != NULL && x->n_chosen == 0)
        return ctl_error("nothing to write: --interface %s: no device, port, interface or leaf is called so: "
                         "see fabricctl devices",
                         x->ctl->interface);
    return CTL_DONE;
}

bool ctl_host_is_chosen(const struct ctl_export *x, const char *host)
{
    return x->n_chosen > 0 &&
           bsearch(&host, x->chosen, x->n_chosen, sizeof *x->chosen, bases_compare_names) != NULL;
}

/* ---- where hosts are ---- */

struct base_finder {
    const struct ctl_bases *bases;
    uint32_t *at;                /* of each device: its base; NONE: none, or it does not count */
    uint32_t *n_hosts, *n_finer; /* of each base: hosts, and those that have a base with fewer hosts, too */
};

/* Of the devices from first on: is it the first one at its base? */
static bool base_is_new(const struct base_finder *f, uint32_t first, uint32_t d)
{
    if (f->at[d] == NONE)
        return false;
    for (uint32_t i = first; i < d; i++)
        if (f->at[i] == f->at[d])
            return false;
    return true;
}

/* Which devices of a host count, and at which bases they are. */
static enum ctl_at base_devices(struct base_finder *f, const char *name, uint32_t first, uint32_t n)
{
    const struct ctl_bases *b = f->bases;
    const bool chosen = ctl_host_is_chosen(b->x, name);
    enum ctl_at how = CTL_AT_NONE;
    bool here = false;

    for (uint32_t d = first; d < first + n; d++) {
        struct pmixfab_device device;
        const bool counts = !chosen || device_is_chosen(b->x->ctl, b->fab, d);

        here |= counts;
        f->at[d] =
            counts && pmixfab_device(b->fab, d, &device) == 0 && device.switch_index < b->plane->n_switches
                ? b->base[device.switch_index]
                : NONE;
        if (base_is_new(f, first, d))
            how = how == CTL_AT_NONE ? CTL_AT_ONE : CTL_AT_SEVERAL;
    }
    return here ? how : CTL_AT_ELSEWHERE;
}

static void base_count(struct base_finder *f, uint32_t first, uint32_t n)
{
    for (uint32_t d = first; d < first + n; d++)
        if (base_is_new(f, first, d))
            f->n_hosts[f->at[d]]++;
}

static void base_compare(struct base_finder *f, uint32_t first, uint32_t n)
{
    uint32_t least = NONE;

    for (uint32_t d = first; d < first + n; d++)
        if (f->at[d] != NONE && f->n_hosts[f->at[d]] < least)
            least = f->n_hosts[f->at[d]];
    for (uint32_t d = first; d < first + n; d++)
        if (base_is_new(f, first, d) && f->n_hosts[f->at[d]] > least)
            f->n_finer[f->at[d]]++;
}

static uint32_t base_choose(const struct base_finder *f, uint32_t first, uint32_t n)
{
    uint32_t best = NONE, most = 0;
    bool best_is_shared = true;

    for (uint32_t d = first; d < first + n; d++) {
        const uint32_t base = f->at[d];
        uint32_t count = 0;

        if (!base_is_new(f, first, d))
            continue;
        const bool shared = 2 * (uint64_t)f->n_finer[base] > f->n_hosts[base];
        for (uint32_t i = d; i < first + n; i++)
            count += f->at[i] == base;
        if (best != NONE && (shared != best_is_shared ? shared : count <= most))
            continue;
        best = base;
        best_is_shared = shared;
        most = count;
    }
    return best;
}

bool ctl_bases_of_hosts(const struct ctl_bases *bases, uint32_t *host_base, enum ctl_at *how)
{
    struct base_finder f = {.bases = bases,
                            .at = malloc((bases->plane->n_devices + (size_t)1) * sizeof *f.at),
                            .n_hosts = calloc(bases->n + (size_t)1, 2 * sizeof *f.n_hosts)};
    const bool ok = f.at != NULL && f.n_hosts != NULL;
    const char *name;
    uint32_t first, n;

    f.n_finer = ok ? f.n_hosts + bases->n : NULL;
    for (uint32_t h = 0; ok && pmixfab_host(bases->fab, h, &name, &first, &n) == 0; h++) {
        how[h] = base_devices(&f, name, first, n);
        base_count(&f, first, n);
    }
    for (uint32_t h = 0; ok && pmixfab_host(bases->fab, h, &name, &first, &n) == 0; h++)
        base_compare(&f, first, n);
    for (uint32_t h = 0; ok && pmixfab_host(bases->fab, h, &name, &first, &n) == 0; h++)
        host_base[h] = base_choose(&f, first, n);
    free(f.at);
    free(f.n_hosts);
    return ok;
}
