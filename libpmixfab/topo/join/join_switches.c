/*
 * join_switches.c - switches of Ethernet planes: those that LLDP names, and the segment that joins the rest.
 *
 * A switch belongs to one plane; one that stands in two is two here, or it would make them one. A device gets
 * the port that LLDP names, by the last number in its text, where that is 1 to 254 and free, else the lowest
 * free one. One port is for the cable to the segment; the devices that do not fit are cabled to the segment.
 *
 * The segment: a switch of at most 200 ports. More switches and devices than that (switches first, then
 * devices by host) make several, 200 on each, below one that joins them, or two levels of those, and so on;
 * the rate of their cables counts as the plane's fastest. A plane of one switch and nothing else has none.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/array.h"
#include "topo/base/natural.h"
#include "topo/join/join_state.h"

#define MAX_DEVICES 253u /* of a switch of LLDP's */
#define MAX_BELOW   200u /* of a switch of a segment */
#define UPLINK      254u

static int join_add_lldp_switch(struct join *j, const struct join_switch *sw, uint32_t *index)
{
    if (!FAB_ARRAY_ROOM(&j->switches, &j->cap_switches, j->n_switches + 1))
        return PMIXFAB_ERR_NOMEM;
    *index = j->n_switches;
    j->switches[j->n_switches] = *sw;
    j->switches[j->n_switches++].above = FAB_NONE;
    return PMIXFAB_OK;
}

/* The port that LLDP's text names: its last number; 0: it has none that a port could have. */
static unsigned port_of_text(const char *text)
{
    unsigned n = 0;
    bool inside = false;
    if (text == NULL || join_mac_value(text) != 0)
        return 0;
    for (; *text != '\0'; text++) {
        bool digit = *text >= '0' && *text <= '9';
        if (digit) {
            n = (inside ? n * 10 : 0) + (unsigned)(*text - '0');
            n = n > 999 ? 999 : n;
        }
        inside = digit;
    }
    return n <= 254 ? n : 0;
}

const char *join_switch_text(const struct join_dev *dev)
{
    return dev->switch_id != NULL ? dev->switch_id : dev->switch_name;
}

static int join_add_cable(struct join *j, uint32_t dev, uint32_t sw, unsigned num)
{
    j->cables[j->n_cables++] = (struct join_cable){dev, sw, (uint8_t)num};
    return PMIXFAB_OK;
}

/* One switch with its devices, keys[0..n-1] by report. What does not fit stays without a cable. */
static int make_switch(struct join *j, const struct fab_key *keys, uint32_t n, bool *cabled)
{
    const struct join_dev *first = &j->devs[keys[0].index];
    const char *text = join_switch_text(first);
    struct join_switch sw = {.plane = first->plane, .name = NULL};
    uint64_t mac = join_mac_value(text);
    uint32_t index, taken = 0;

    sw.guid = mac != 0 ? FAB_ETHERNET_GUID | mac : join_made_up("switch", text, NULL, 0);
    for (uint32_t i = 0; i < n; i++) {
        const char *name = j->devs[keys[i].index].switch_name;
        if (name != NULL && (sw.name == NULL || fab_natural_cmp(name, sw.name) < 0))
            sw.name = name;
    }
    if (sw.name == NULL)
        sw.name = text;
    int rc = join_add_lldp_switch(j, &sw, &index);
    for (unsigned pass = 0; pass < 2 && rc == PMIXFAB_OK; pass++)
        for (uint32_t i = 0; i < n && taken < MAX_DEVICES; i++) {
            uint32_t d = keys[i].index;
            uint64_t *used = j->switches[index].used;
            unsigned wanted = port_of_text(j->devs[d].switch_port);
            bool free = wanted != 0 && (used[wanted / 64] >> wanted % 64 & 1) == 0;
            if (cabled[d] || (pass == 0 && !free))
                continue;
            cabled[d] = true;
            join_add_cable(j, d, index, join_take_number(used, free ? wanted : 0, 254));
            taken++;
        }
    return rc;
}

/* Switches that LLDP names, by plane and first device. */
static int make_switches(struct join *j, struct fab_key *keys, struct fab_key *order, bool *cabled)
{
    uint32_t n = 0, n_runs = 0;
    int rc = PMIXFAB_OK;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        const struct join_dev *dev = &j->devs[d];
        const char *text = dev->plane == FAB_NONE ? NULL : join_switch_text(dev);
        if (text != NULL)
            keys[n++] = (struct fab_key){
                XXH3_64bits_withSeed(text, strlen(text), (uint64_t)dev->plane * 2 + (dev->switch_id != NULL)),
                d};
    }
    fab_radix_sort(keys, order, n);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || keys[i].value != keys[i - 1].value)
            order[n_runs++] =
                (struct fab_key){(uint64_t)j->devs[keys[i].index].plane << 32 | keys[i].index, i};
    fab_radix_sort(order, order + n_runs, n_runs);
    for (uint32_t r = 0; r < n_runs && rc == PMIXFAB_OK; r++) {
        uint32_t first = order[r].index, end = first + 1;
        while (end < n && keys[end].value == keys[first].value)
            end++;
        rc = make_switch(j, keys + first, end - first, cabled);
    }
    return rc;
}

static int add_segment(struct join *j, uint32_t plane, uint32_t level, uint32_t number, uint32_t *index)
{
    struct join_switch sw = {.plane = plane, .level = level, .number = number};
    sw.guid = join_made_up("segment", j->planes[plane].name, NULL, (uint64_t)level << 32 | number);
    return join_add_lldp_switch(j, &sw, index);
}

static void join_link_below(struct join *j, uint32_t below, uint32_t above, uint32_t place)
{
    struct join_switch *sw = &j->switches[below];
    sw->above = above;
    sw->up = (uint8_t)join_take_number(sw->used, UPLINK, 254);
    sw->down = (uint8_t)(place % MAX_BELOW + 1);
}

/* The segment of a plane, for its switches sw .. sw_end-1 and the devices in list. */
static int make_segment(struct join *j, uint32_t plane, uint32_t sw, uint32_t sw_end, const uint32_t *list,
                        uint32_t n)
{
    uint32_t total = sw_end - sw + n, index = 0, below = sw;
    int rc = PMIXFAB_OK;
    if (total == 0 || (n == 0 && total == 1))
        return PMIXFAB_OK;
    for (uint32_t level = 1; rc == PMIXFAB_OK; level++) {
        uint32_t first = j->n_switches;
        for (uint32_t i = 0; i < total && rc == PMIXFAB_OK; i++) {
            if (i % MAX_BELOW == 0)
                rc = add_segment(j, plane, level, i / MAX_BELOW + 1, &index);
            if (rc == PMIXFAB_OK && level == 1 && i >= sw_end - sw)
                rc = join_add_cable(j, list[i - (sw_end - sw)], index, i % MAX_BELOW + 1);
            else if (rc == PMIXFAB_OK)
                join_link_below(j, below + i, index, i);
        }
        below = first;
        total = j->n_switches - first;
        if (total == 1)
            break;
    }
    if (rc == PMIXFAB_OK)
        j->switches[index].level = 0; /* the one on top has the plane's name */
    return rc;
}

int join_switches(struct join *j)
{
    struct fab_key *keys = join_temp(j, j->n_devs, sizeof(*keys));
    struct fab_key *order = join_temp(j, 2 * (size_t)j->n_devs, sizeof(*order));
    uint32_t *list = join_temp(j, j->n_devs, sizeof(*list));
    bool *cabled = join_temp(j, j->n_devs, sizeof(*cabled));
    j->cables = join_alloc(j, j->n_devs, sizeof(*j->cables));
    int rc = j->no_memory ? PMIXFAB_ERR_NOMEM : make_switches(j, keys, order, cabled);
    if (rc != PMIXFAB_OK)
        return rc;
    uint32_t sw = 0, n_named = j->n_switches, n = 0;
    for (uint32_t d = 0; d < j->n_devs; d++) /* by plane, of one plane by report */
        if (j->devs[d].plane != FAB_NONE && !cabled[d])
            keys[n++] = (struct fab_key){j->devs[d].plane, d};
    fab_radix_sort(keys, order, n);
    for (uint32_t i = 0; i < n; i++)
        list[i] = keys[i].index;
    for (uint32_t plane = 0, at = 0; plane < j->n_planes && rc == PMIXFAB_OK; plane++) {
        uint32_t first = at, sw_first = sw;
        while (at < n && keys[at].value == plane)
            at++;
        while (sw < n_named && j->switches[sw].plane == plane)
            sw++;
        rc = make_segment(j, plane, sw_first, sw, list + first, at - first);
    }
    return rc;
}
