/*
 * handle.h - what stands behind the public `struct pmixfab`: pointers into one checked snapshot.
 */
#ifndef FAB_TOPO_HANDLE_H
#define FAB_TOPO_HANDLE_H

#include "topo/report/report.h"
#include "topo/snapshot/format.h"
#include "topo/snapshot/snapshot.h"

struct pmixfab {
    struct fab_cost_view costs; /* first: the one cache line that the cost of a pair needs of this struct */
    const struct snap_meta *meta;
    const struct snap_device *devices;
    const struct snap_host *hosts;
    const struct snap_switch *switches;
    const struct snap_link *links;
    const uint64_t *others;
    const uint32_t *logical, *physical;
    const uint32_t *group_start, *group_members;
    const uint32_t *by_node, *by_port;
    const uint32_t *fact_at; /* NULL: no facts */
    const struct snap_fact *facts;
    const char *strings;
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

/* One past the last device of a host. */
static inline uint32_t fab_reader_host_end(const struct pmixfab *fab, uint32_t host)
{
    return host + 1 < fab->meta->n_hosts ? fab->hosts[host + 1].first : fab->meta->n_devices;
}

/* The device that is served with this port GUID; FAB_NONE. */
uint32_t fab_reader_port(const struct pmixfab *fab, uint64_t guid);

/* What a device itself says it is: its node GUID, 0 where it has none, with its system image GUID; and its
 * MAC, or else what stands for it. */
void fab_reader_own(const struct pmixfab *fab, uint32_t index, uint64_t *node, uint64_t *system,
                    uint64_t *mac);

/* Does a device have this id? That is its own, or the one that the stock library gives an interface of it:
 * "ipv4://" with a MAC, "ipv6://" with the 20 bytes of IP over InfiniBand. The case of digits means nothing.
 */
bool fab_reader_has_id(const struct pmixfab *fab, uint32_t index, const char *id);

/* By what a device goes that its facts alone tell; 0: by none. FAB_FACT_MAC: its interface's; _SYSTEM_GUID:
 * where it does not go by its node GUID, and no other host's device has the same id: that with the node GUID
 * that it says, else *node is 0. */
uint64_t fab_reader_said(const struct pmixfab *fab, uint32_t index, enum fab_fact kind, uint64_t *node);
/* The host of the device that goes by this FAB_FACT_NODE_GUID or _PORT_GUID, or by that node GUID and has
 * this _SYSTEM_GUID; NULL. */
const char *fab_reader_holder(const struct pmixfab *fab, enum fab_fact kind, uint64_t value, uint64_t node);

/* Map and check a file. As pmixfab_open_file(), but the reason goes to err, not to the log. */
int fab_reader_open(const char *path, struct pmixfab **out, struct fab_err *err);

#endif
