/*
 * ibnetdisc_systems.c - spare libibnetdisc a search that grows with the square of the fabric.
 *
 * After a discovery the library looks for chassis: for every node it walks a list of all system image GUIDs,
 * twice. That is a third of a sweep at 10,000 hosts, and would be a minute at 100,000; no configuration turns
 * it off. We number chassis ourselves (chassis.c), so it is of no use here. A node without a system image
 * GUID is left out of the search, and the library learns that GUID from libibmad's mad_get_field64(). It
 * finds the one below instead, because a program's own functions go before those of its libraries; with
 * another linker, or another library, that does not ask this way, the search takes place and nothing else
 * changes.
 *
 * What a probe reads of a node are the raw bytes that the node sent: they hold the GUID all the same.
 */
#include <dlfcn.h>
#include <infiniband/mad.h>
#include <stdatomic.h>

#include "probes/ibnetdisc/ibnetdisc.h"

static _Thread_local bool hidden;

void ibnetdisc_hide_systems(bool hide)
{
    hidden = hide;
}

/* libibmad's own. */
static uint64_t read_field(void *buf, int base_offs, enum MAD_FIELDS field)
{
    static _Atomic(uintptr_t) address;
    uintptr_t at = atomic_load_explicit(&address, memory_order_relaxed);
    if (at == 0) {
        at = (uintptr_t)dlsym(RTLD_NEXT, "mad_get_field64");
        atomic_store_explicit(&address, at, memory_order_relaxed);
    }
    return at == 0 ? 0 : ((uint64_t(*)(void *, int, enum MAD_FIELDS))at)(buf, base_offs, field);
}

uint64_t mad_get_field64(void *buf, int base_offs, enum MAD_FIELDS field)
{
    return hidden && field == IB_NODE_SYSTEM_GUID_F ? 0 : read_field(buf, base_offs, field);
}
