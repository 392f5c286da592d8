/*
 * reader.h - the contents of the public `struct pmixfab`: pointers into one checked snapshot, and the
 * identities of its devices.
 */
#ifndef FAB_TOPO_SNAPSHOT_READER_H
#define FAB_TOPO_SNAPSHOT_READER_H

#include "topo/model/report.h"
#include "topo/snapshot/format.h"
#include "topo/snapshot/snapshot.h"

struct pmixfab {
    struct fab_cost_view costs; /* first: the only cache line of this struct that the cost of a pair needs */
    const struct snap_meta *meta;
    const struct snap_device *devices;
    const struct snap_host *hosts;
    const struct snap_switch *switches;
    const struct snap_link *links;
    const uint64_t *others;
    const uint32_t *logical, *physical;
    const uint32_t *group_start, *group_members;
    const uint32_t *group_names;   /* NULL before version 4, as the next three */
    const struct snap_rail *rails; /* per switch */
    const struct snap_stray *strays;
    const uint32_t *other_kinds;
    const uint32_t *by_node, *by_port;
    const uint32_t *fact_at; /* NULL: no facts */
    const struct snap_fact *facts;
    const char *strings;
    /* Of an excerpt: the numbers of its devices, hosts and groups in their plane. NULL: their own numbers. */
    const uint32_t *device_numbers, *host_numbers, *group_numbers;
    const struct snap_head *head; /* the snapshot's first byte */
    void *heap;                   /* to be freed, or NULL */
    void *map;                    /* to be unmapped (head->size bytes), or NULL */
};

static inline const char *fab_reader_string(const struct pmixfab *fab, uint32_t offset)
{
    return fab->strings + offset;
}

static inline const char *fab_reader_host(const struct pmixfab *fab, uint32_t host)
{
    return fab->strings + fab->hosts[host].name;
}

/* Return the number in the plane: fab_reader_number(fab->host_numbers, host). */
static inline uint32_t fab_reader_number(const uint32_t *numbers, uint32_t i)
{
    return numbers != NULL ? numbers[i] : i;
}

/* Return the end of the devices of a host. */
static inline uint32_t fab_reader_host_end(const struct pmixfab *fab, uint32_t host)
{
    return host + 1 < fab->meta->n_hosts ? fab->hosts[host + 1].first : fab->meta->n_devices;
}

/* Return whether the site configures that jobs use this device. */
static inline bool fab_reader_is_compute(const struct pmixfab *fab, uint32_t device)
{
    const uint32_t end = fab->fact_at == NULL ? 0 : fab->fact_at[device + 1];
    return end > 0 && end > fab->fact_at[device] && fab->facts[end - 1].kind == FAB_FACT_COMPUTE;
}

/*
 * Return the first device of a host that jobs use, and with fab_reader_next_used() the following ones; all of
 * them if the site selects none. The end of the host's devices: no more.
 */
static inline uint32_t fab_reader_first_used(const struct pmixfab *fab, uint32_t host)
{
    for (uint32_t d = fab->hosts[host].first; d < fab_reader_host_end(fab, host); d++)
        if (fab_reader_is_compute(fab, d))
            return d;
    return fab->hosts[host].first;
}

static inline uint32_t fab_reader_next_used(const struct pmixfab *fab, uint32_t host, uint32_t device)
{
    const uint32_t end = fab_reader_host_end(fab, host);
    const bool marked = fab_reader_is_compute(fab, device);

    for (device++; device < end && marked && !fab_reader_is_compute(fab, device);)
        device++;
    return device;
}

/* Map and check a file. As pmixfab_open_file(), but the reason is in err and not logged. */
int fab_reader_open(const char *path, struct pmixfab **out, struct fab_err *err);

/*
 * ---- identities of devices: GUIDs, MACs, and the ids made of them (identity.c)
 * -----------------------------
 */

/* Return the published device with this port GUID; FAB_NONE. */
uint32_t fab_reader_port(const struct pmixfab *fab, uint64_t guid);

/*
 * Return whether a device has this id. It may be the device's own id, or an id that the PMIx library uses for
 * one of its interfaces: "ipv4://" with a MAC, or "ipv6://" with the 20 bytes of IP over InfiniBand. Case is
 * ignored.
 */
bool fab_reader_has_id(const struct pmixfab *fab, uint32_t index, const char *id);

/*
 * Return an identity of a device that only its facts contain; 0: none. For FAB_FACT_MAC, return the MAC of
 * its interface. The _SYSTEM_GUID of a device is returned if two conditions hold: the device is not known by
 * its node GUID, and no other host's device has the same id. Then *node becomes the reported node GUID.
 * Otherwise *node is 0.
 */
uint64_t fab_reader_said(const struct pmixfab *fab, uint32_t index, enum fab_fact kind, uint64_t *node);
/*
 * Return the host of the device that goes by this FAB_FACT_NODE_GUID or _PORT_GUID, or by that node GUID with
 * this _SYSTEM_GUID; NULL.
 */
const char *fab_reader_holder(const struct pmixfab *fab, enum fab_fact kind, uint64_t value, uint64_t node);

/*
 * Return whether this host has a device that reports this node GUID and does not go by it, because others
 * report it, too.
 */
bool fab_reader_disowned(const struct pmixfab *fab, const char *host, uint64_t guid);

/*
 * Write the device's id of PMIx_Compute_distances: made of its GUIDs, also if it goes by a generated one. to:
 * as long as the `id` of struct pmixfab_device.
 */
void fab_reader_write_id(const struct pmixfab *fab, uint32_t index, char *to);

#endif
