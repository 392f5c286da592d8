/* chassis.c - which switches are parts of one chassis, and in which slots. */
#include <stdlib.h>
#include <string.h>

#include "probes/fabric/observed.h"

struct member {
    uint64_t system;
    uint64_t guid;
    uint32_t node;
};

static int same_system(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return x->system < y->system ? -1 : x->system > y->system;
}

/* Members that stand first in their chassis, by GUID. */
static int chassis_compare_guid(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return x->guid < y->guid ? -1 : x->guid > y->guid;
}

static int by_system(const void *a, const void *b)
{
    int order = same_system(a, b);
    return order != 0 ? order : chassis_compare_guid(a, b);
}

/* Cisco's and InfiniCon's system image GUIDs carry the slot in their fourth byte. */
static uint64_t chassis_guid(const struct fab_node *node)
{
    if (node->vendor_id == 0x5ad || node->vendor_id == 0x66a)
        return node->system_guid & 0xffffffff00ffffffull;
    return node->system_guid;
}

/* A number from 1 to max, moving *p behind it; 0: none. */
static uint8_t small_number(const char **p, unsigned max)
{
    unsigned v = 0;
    while (**p >= '0' && **p <= '9' && v <= max)
        v = v * 10 + (unsigned)(*(*p)++ - '0');
    return (uint8_t)(v <= max ? v : 0);
}

/* "MF0;name:type/L01/U1" or ".../S03:board/U1": line card 1, spine 3. Switches that are no parts of a larger
 * one have no slot in it: "MF0;name:type/U1". */
static void read_slot(struct fab_node *node, const char *desc)
{
    if (strncmp(desc, "MF0;", 4) != 0)
        return;
    const char *p = strchr(desc, ':');
    p = p != NULL ? strchr(p, '/') : NULL;
    if (p == NULL || (p[1] != 'L' && p[1] != 'S'))
        return;
    uint8_t type = p[1] == 'L' ? 1 : 2;
    p += 2;
    uint8_t slot = small_number(&p, 99);
    const char *chip = strchr(p, '/');
    if (slot == 0 || (*p != ':' && *p != '/') || chip == NULL || chip[1] != 'U')
        return;
    chip += 2;
    node->slot_type = type;
    node->slot = slot;
    node->chip = small_number(&chip, 99);
}

/* Of m sorted members: move the first of each chassis of two or more to the front; how many. */
static uint32_t chassis_leaders(struct member *m, uint32_t n)
{
    uint32_t n_chassis = 0;
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && m[end].system == m[i].system;)
            end++;
        if (end - i >= 2)
            m[n_chassis++] = m[i];
    }
    return n_chassis;
}

static uint16_t chassis_number_of(const struct member *by_system_sorted, uint32_t n, uint64_t system)
{
    const struct member key = {.system = system};
    const struct member *found = bsearch(&key, by_system_sorted, n, sizeof(key), same_system);
    return (uint16_t)(found != NULL ? found->node : 0);
}

int chassis_number(struct fab_inventory *inv, struct fab_err *err)
{
    uint32_t n = 0;
    struct member *m = malloc((inv->n_nodes + 1) * sizeof(*m));
    if (m == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory for the chassis of %u nodes", inv->n_nodes);
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        struct fab_node *node = &inv->nodes[i];
        if (node->kind != FAB_SWITCH)
            continue;
        read_slot(node, fab_str(inv, node->desc));
        if (node->system_guid != 0)
            m[n++] = (struct member){chassis_guid(node), node->guid, i};
    }
    qsort(m, n, sizeof(*m), by_system);
    n = chassis_leaders(m, n);
    qsort(m, n, sizeof(*m), chassis_compare_guid);
    for (uint32_t i = 0; i < n; i++)
        m[i].node = i < UINT16_MAX ? i + 1 : 0;
    qsort(m, n, sizeof(*m), by_system);
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        struct fab_node *node = &inv->nodes[i];
        if (node->kind == FAB_SWITCH && node->system_guid != 0)
            node->chassis = chassis_number_of(m, n, chassis_guid(node));
    }
    free(m);
    return PMIXFAB_OK;
}
