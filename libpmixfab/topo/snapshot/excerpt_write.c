/*
 * excerpt_write.c - what some hosts of a plane are told, as bytes:
 *
 *   head | strings | hosts | switches | devices | groups
 *
 * All numbers are little-endian. A string is an offset into the strings, a switch and a host the number of
 * its place here.
 */
#include "topo/base/string_table.h"
#include "topo/snapshot/excerpt.h"
#include "topo/snapshot/reader.h"

#include <stdlib.h>

struct excerpt_out {
    const struct pmixfab *fab;
    struct fab_strings strings;
    struct fab_bytes body;
    uint32_t *hosts, n_hosts; /* of the plane */
    uint32_t *switches;       /* of the plane, ascending; their place is their number here */
    uint32_t n_switches, n_devices, n_facts, n_groups, n_members;
};

static void excerpt_string(struct excerpt_out *out, uint32_t offset)
{
    fab_bytes_put(&out->body, fab_strings_add(&out->strings, fab_reader_string(out->fab, offset)), 4);
}

/* ---- who is in it ----------------------------------------------------------------------------------- */

static int excerpt_cmp(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static int excerpt_choose(struct excerpt_out *out, const bool *wanted)
{
    const struct pmixfab *fab = out->fab;
    uint32_t n = 0;
    for (uint32_t h = 0; h < fab->meta->n_hosts; h++) {
        out->n_hosts += wanted[h];
        out->n_devices += wanted[h] ? fab_reader_host_end(fab, h) - fab->hosts[h].first : 0;
    }
    out->hosts = malloc(((size_t)out->n_hosts + 1) * sizeof(*out->hosts));
    out->switches = malloc(((size_t)out->n_devices + 1) * sizeof(*out->switches));
    if (out->hosts == NULL || out->switches == NULL)
        return PMIXFAB_ERR_NOMEM;
    out->n_hosts = 0;
    for (uint32_t h = 0; h < fab->meta->n_hosts; h++) {
        if (!wanted[h])
            continue;
        out->hosts[out->n_hosts++] = h;
        for (uint32_t i = fab->hosts[h].first; i < fab_reader_host_end(fab, h); i++)
            if (fab->devices[i].sw != FAB_NONE)
                out->switches[n++] = fab->devices[i].sw;
    }
    qsort(out->switches, n, sizeof(*out->switches), excerpt_cmp);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || out->switches[i] != out->switches[i - 1])
            out->switches[out->n_switches++] = out->switches[i];
    return PMIXFAB_OK;
}

/* ---- what is said of them --------------------------------------------------------------------------- */

static void excerpt_hosts(struct excerpt_out *out)
{
    for (uint32_t i = 0; i < out->n_hosts; i++) {
        const struct snap_host *host = &out->fab->hosts[out->hosts[i]];
        excerpt_string(out, host->name);
        fab_bytes_put(&out->body, out->hosts[i], 4);
        fab_bytes_put(&out->body, fab_reader_host_end(out->fab, out->hosts[i]) - host->first, 4);
    }
}

/* Of each kind the first: nobody who asks for a kind looks at another. */
static void excerpt_facts(struct excerpt_out *out, uint32_t device)
{
    const struct pmixfab *fab = out->fab;
    const uint32_t before = out->n_facts, at = out->body.n;
    uint8_t last = 0;
    fab_bytes_put(&out->body, 0, 1);
    for (uint32_t f = fab->fact_at == NULL ? 0 : fab->fact_at[device];
         fab->fact_at != NULL && f < fab->fact_at[device + 1] && fab->facts[f].kind < FAB_FACTS; f++) {
        const struct snap_fact *fact = &fab->facts[f];
        if (fact->kind == last)
            continue;
        last = fact->kind;
        fab_bytes_put(&out->body, fact->kind, 1);
        fab_bytes_put(&out->body, fact->flags, 1);
        excerpt_string(out, fact->text);
        out->n_facts++;
    }
    if (!out->body.failed)
        out->body.at[at] = (uint8_t)(out->n_facts - before);
}

static void excerpt_device(struct excerpt_out *out, uint32_t i)
{
    const struct snap_device *device = &out->fab->devices[i];
    const struct snap_meta *meta = out->fab->meta;
    const uint32_t *sw = device->sw == FAB_NONE ? NULL
                                                : bsearch(&device->sw, out->switches, out->n_switches,
                                                          sizeof(*out->switches), excerpt_cmp);
    excerpt_string(out, device->name);
    fab_bytes_put(&out->body, i, 4);
    fab_bytes_put(&out->body, device->node_guid, 8);
    fab_bytes_put(&out->body, device->port_guid, 8);
    fab_bytes_put(&out->body, device->system_guid, 8);
    fab_bytes_put(&out->body, sw == NULL ? FAB_NONE : (uint32_t)(sw - out->switches), 4);
    fab_bytes_put(&out->body, device->mbps, 4);
    fab_bytes_put(&out->body, device->port, 1);
    fab_bytes_put(&out->body, device->switch_port, 1);
    fab_bytes_put(&out->body, device->state, 1);
    fab_bytes_put(&out->body, device->seen != 0 ? device->seen : PMIXFAB_SEEN_SUBNET, 1);
    for (uint32_t d = 0; d < meta->dims; d++)
        fab_bytes_put(&out->body, out->fab->logical[(size_t)i * meta->dims + d], 4);
    for (uint32_t d = 0; d < meta->physical_dims; d++)
        fab_bytes_put(&out->body, out->fab->physical[(size_t)i * meta->physical_dims + d], 4);
    excerpt_facts(out, i);
}

/* Those with hosts that are wanted; the members ascend, as the hosts do. */
static void excerpt_groups(struct excerpt_out *out, const bool *wanted)
{
    const struct pmixfab *fab = out->fab;
    for (uint32_t g = 0; g < fab->meta->n_groups; g++) {
        const uint32_t at = out->body.n + 4, before = out->n_members;
        for (uint32_t m = fab->group_start[g]; m < fab->group_start[g + 1]; m++) {
            const uint32_t host = fab->group_members[m];
            if (!wanted[host])
                continue;
            if (out->n_members++ == before) {
                fab_bytes_put(&out->body, g, 4);
                fab_bytes_put(&out->body, 0, 4);
                out->n_groups++;
            }
            const uint32_t *place =
                bsearch(&host, out->hosts, out->n_hosts, sizeof(*out->hosts), excerpt_cmp);
            fab_bytes_put(&out->body, (uint64_t)(place - out->hosts), 4);
        }
        if (out->n_members > before && !out->body.failed)
            frame_put(out->body.at + at, out->n_members - before, 4);
    }
}

/* ---- all -------------------------------------------------------------------------------------------- */

/* The numbers of everything, so that a reader knows at once what it needs; then what the plane is. */
static void excerpt_head(struct excerpt_out *out, struct fab_bytes *to)
{
    const struct snap_meta *meta = out->fab->meta;
    const uint32_t counts[] = {out->n_hosts,  out->n_switches, out->n_devices,   out->n_facts,
                               out->n_groups, out->n_members,  out->strings.size};
    const uint32_t texts[] = {meta->name, meta->vendor, meta->identifier, meta->kind};
    uint32_t strings[4];
    for (size_t i = 0; i < 4; i++)
        strings[i] = fab_strings_add(&out->strings, fab_reader_string(out->fab, texts[i]));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        fab_bytes_put(to, i == 6 ? out->strings.size : counts[i], 4);
    fab_bytes_put(to, out->fab->head->generation, 8);
    fab_bytes_put(to, (uint64_t)out->fab->head->published, 8);
    fab_bytes_put(to, meta->fastest_mbps, 8);
    fab_bytes_put(to, meta->index, 4);
    fab_bytes_put(to, meta->is_default, 1);
    for (size_t i = 0; i < 4; i++)
        fab_bytes_put(to, strings[i], 4);
    fab_bytes_put(to, meta->dims, 1);
    for (uint32_t d = 0; d < meta->dims; d++)
        fab_bytes_put(to, meta->shape[d], 4);
    fab_bytes_put(to, meta->physical_dims, 1);
    for (uint32_t d = 0; d < meta->physical_dims; d++)
        fab_bytes_put(to, meta->physical_shape[d], 4);
    fab_bytes_add(to, out->strings.text, out->strings.size);
}

int fab_excerpt_write(const struct pmixfab *fab, const bool *wanted, struct fab_bytes *to)
{
    struct excerpt_out out = {.fab = fab};
    int rc = fab_strings_init(&out.strings) ?: excerpt_choose(&out, wanted);
    if (rc == PMIXFAB_OK) {
        excerpt_hosts(&out);
        for (uint32_t i = 0; i < out.n_switches; i++)
            fab_bytes_put(&out.body, fab->switches[out.switches[i]].guid, 8);
        for (uint32_t h = 0; h < out.n_hosts; h++)
            for (uint32_t i = fab->hosts[out.hosts[h]].first; i < fab_reader_host_end(fab, out.hosts[h]); i++)
                excerpt_device(&out, i);
        excerpt_groups(&out, wanted);
        excerpt_head(&out, to);
        fab_bytes_add(to, out.body.at, out.body.n);
        rc = out.strings.error != 0          ? out.strings.error
             : out.body.failed || to->failed ? PMIXFAB_ERR_NOMEM
                                             : PMIXFAB_OK;
    }
    fab_strings_destroy(&out.strings);
    free(out.body.at);
    free(out.hosts);
    free(out.switches);
    return rc;
}
