/*
 * file_both_ends.c - nodes and ports of records whose lines describe both ends of a cable.
 *
 * Lines come in any order. Each end belongs to the node that it names, else to the node of its port GUID. If
 * the lines of an HCA do not name it, it is identified by the GUID of its lowest port. Its lines follow each
 * other with one description, or their GUIDs are as far apart as their port numbers. The far end is found by
 * its port GUID, or by its LID and port, which are unique in a subnet.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "probes/capture/file_capture.h"
#include "topo/base/array.h"
#include "topo/base/radix.h"
#include "topo/base/search.h"

#define HCA_PORTS 2 /* an end without a line of its own and with a higher port is not an HCA */

/* Indices of the lines, by search key. */
struct told_index {
    struct fab_key *by_port; /* port GUID */
    struct fab_key *by_lid;  /* LID and port; only lines with a LID */
    struct fab_key *by_node; /* node GUID, then line: lines of a node are neighbours */
    struct fab_key *scratch;
    uint32_t n, n_lids;
};

/* Maximum number of lines of one GUID that are searched: as many as a node may have. */
#define PORT_LINES 256

int capture_tell(struct reader *r, const struct told_line *line)
{
    struct told *told = &r->told;
    if (r->c.inv->n_nodes > 0 || r->head.line != 0)
        return scan_fail(
            &r->s, r->s.line, PMIXFAB_ERR_SYNTAX,
            "a line that describes both ends of a cable (as from ibnetdiscover -p) among records");
    if (!FAB_ARRAY_ROOM(&told->lines, &told->cap, (uint64_t)told->n + 1))
        return capture_no_room(r, PMIXFAB_ERR_NOMEM);
    told->lines[told->n] = *line;
    told->lines[told->n].start = r->s.line;
    told->lines[told->n++].number = r->s.number;
    return PMIXFAB_OK;
}

/* ---- the node of an end ---- */

static bool is_named_like(const struct told_end *end, const char *start)
{
    return end->name_len >= strlen(start) && memcmp(end->name, start, strlen(start)) == 0;
}

/* Guess the kind for lines without one: all ports of a switch have one GUID. `lines` of this GUID are n. */
static enum node_type guess_type(const struct told *told, const struct fab_key *lines, uint32_t n)
{
    const struct told_end *end = &told->lines[lines[0].index].near;
    for (uint32_t i = 0; i < n; i++)
        if (told->lines[lines[i].index].near.num > HCA_PORTS)
            return NODE_TYPE_SWITCH;
    return n > 1 || is_named_like(end, "MF0;") ? NODE_TYPE_SWITCH : NODE_TYPE_CA;
}

static void sort_by_port(struct told *told, struct told_index *index)
{
    for (uint32_t i = 0; i < told->n; i++)
        index->by_port[i] = (struct fab_key){told->lines[i].near.guid, i};
    fab_radix_sort(index->by_port, index->scratch, told->n);
    for (uint32_t first = 0, end; first < told->n; first = end) {
        const struct fab_key *keys = &index->by_port[first];
        for (end = first + 1; end < told->n && index->by_port[end].value == keys->value;)
            end++;
        if (told->lines[keys->index].near.type != 0)
            continue;
        const enum node_type type = guess_type(told, keys, end - first);
        for (uint32_t i = first; i < end; i++)
            told->lines[index->by_port[i].index].near.type = (uint8_t)type;
    }
}

/* Return whether this line is of the same HCA as the line before it. */
static bool goes_on(const struct told *told, const struct told_line *line)
{
    const struct told_end *a = &line[-1].near, *b = &line->near;
    if (b->type == NODE_TYPE_SWITCH || a->type != b->type || b->node != 0 || line[-1].head != line->head)
        return false;
    return line->head != 0 || ((told->ascending ? b->num > a->num : b->num < a->num) &&
                               a->name_len == b->name_len && memcmp(a->name, b->name, b->name_len) == 0);
}

static void name_nodes(struct told *told)
{
    for (uint32_t first = 0, end; first < told->n; first = end) {
        struct told_line *lines = &told->lines[first];
        for (end = first + 1; end < told->n && goes_on(told, &told->lines[end]);)
            end++;
        const struct told_end *lowest = &lines[0].near;
        for (uint32_t i = 1; i < end - first; i++)
            if (lines[i].near.num < lowest->num)
                lowest = &lines[i].near;
        if (lowest->node == 0)
            for (uint32_t i = 0; i < end - first; i++)
                lines[i].near.node = lowest->guid;
    }
}

/*
 * Join lines of one HCA that do not follow each other, as in a sorted file: the GUIDs of its ports differ by
 * one, too.
 */
static void join_ports_of_hcas(struct told *told, struct told_index *index)
{
    struct fab_key *keys = index->by_node;
    uint32_t n = 0;
    for (uint32_t i = 0; i < told->n; i++)
        if (told->lines[i].near.type != NODE_TYPE_SWITCH && told->lines[i].head == 0)
            keys[n++] = (struct fab_key){told->lines[i].near.guid - told->lines[i].near.num, i};
    fab_radix_sort(keys, index->scratch, n);
    for (uint32_t i = 1; i < n; i++) {
        struct told_end *a = &told->lines[keys[i - 1].index].near, *b = &told->lines[keys[i].index].near;
        if (keys[i].value != keys[i - 1].value || a->num == b->num || a->name_len != b->name_len ||
            memcmp(a->name, b->name, a->name_len) != 0)
            continue;
        a->node = b->node = a->node < b->node ? a->node : b->node;
    }
}

/*
 * Return the line of a far end's port; NULL: none. If only the front panel's name is given, also set the
 * port's number. *node becomes a line of the node of the far end; NULL: none.
 */
static const struct told_line *far_line(const struct told *told, const struct told_index *index,
                                        struct told_end *far, const struct told_line **node)
{
    const struct fab_key *keys = index->by_port;
    *node = NULL;
    if (far->guid == 0 && far->lid != 0) {
        uint32_t line = fab_radix_find(index->by_lid, index->n_lids, (uint64_t)far->lid << 8 | far->num);
        *node = line == UINT32_MAX ? NULL : &told->lines[line];
        return *node;
    }
    uint32_t at = FAB_LOWER_BOUND(0, index->n, i, keys[i].value < far->guid);
    const uint32_t end = at + PORT_LINES < index->n ? at + PORT_LINES : index->n;
    for (; far->guid != 0 && at < end && keys[at].value == far->guid; at++) {
        const struct told_line *line = *node = &told->lines[keys[at].index];
        if (far->label != NULL && line->near.label_len == far->label_len &&
            memcmp(line->near.label, far->label, far->label_len) == 0)
            far->num = line->near.num;
        if (line->near.num == far->num)
            return line;
    }
    return NULL;
}

/* Find the nodes of far ends; an end without a line is identified by its port. */
static void find_far_ends(struct told *told, const struct told_index *index)
{
    for (uint32_t i = 0; i < told->n; i++) {
        struct told_end *far = &told->lines[i].far;
        const struct told_line *node;
        far_line(told, index, far, &node);
        if (far->num == 0 && far->guid != 0 && far->label_len > 0 && node == NULL)
            far->num = 1; /* an HCA without lines: each port is identified by its own GUID */
        if (far->node == 0)
            far->node = node != NULL ? node->near.node : far->guid;
        if (far->type == 0 && node != NULL)
            far->type = node->near.type;
        else if (far->type == 0)
            far->type = far->num > HCA_PORTS || is_named_like(far, "MF0;") ? NODE_TYPE_SWITCH : NODE_TYPE_CA;
    }
}

/*
 * A record of switches only (iblinkinfo --switches-only, ibdiagnet2.net_dump) has no line of an HCA: the line
 * at the other end describes it.
 */
static int tell_far_ends(struct reader *r, const struct told_index *index)
{
    struct told *told = &r->told;
    const uint32_t n = told->n;
    uint32_t unknown = 0;
    bool hosts = false;
    for (uint32_t i = 0; i < n; i++) {
        const struct told_line *line = &told->lines[i];
        unknown += line->far.num != 0 && line->far.node == 0;
        hosts = hosts || line->near.type != NODE_TYPE_SWITCH;
    }
    if (!hosts && unknown > 0)
        return fab_fail(r->c.err, PMIXFAB_ERR_SYNTAX,
                        "%s: %" PRIu32 " ports lead to nodes whose GUIDs are missing; record it with "
                        "iblinkinfo -l, or without --switches-only",
                        r->c.file, unknown);
    for (uint32_t i = 0; i < n; i++) {
        struct told_line line = told->lines[i];
        const struct told_line *node;
        if (hosts || line.far.num == 0 || line.far.type == NODE_TYPE_SWITCH ||
            far_line(told, index, &line.far, &node) != NULL)
            continue;
        const struct told_end near = line.near;
        line.near = line.far;
        line.far = near;
        if (!FAB_ARRAY_ROOM(&told->lines, &told->cap, (uint64_t)told->n + 1))
            return fab_fail(r->c.err, PMIXFAB_ERR_NOMEM, "%s: out of memory", r->c.file);
        told->lines[told->n++] = line;
    }
    return PMIXFAB_OK;
}

/* ---- nodes and ports ---- */

static int add_told_port(struct reader *r, const struct told_line *line)
{
    const struct told_end *near = &line->near, *far = &line->far;
    const bool is_switch = near->type == NODE_TYPE_SWITCH;
    const bool up = line->state != FAB_PORT_DOWN;
    const struct fab_port port = {.guid = is_switch ? 0 : near->guid,
                                  .node = r->node,
                                  .peer = FAB_NONE,
                                  .line = line->number,
                                  .lid = is_switch || !up ? 0 : (uint16_t)near->lid,
                                  .num = (uint8_t)near->num,
                                  .state = line->state,
                                  .width = up ? line->width : 0,
                                  .speed = up ? line->speed : FAB_SPEED_UNKNOWN};
    struct capture_peer peer = {0};
    r->s.line = line->start;
    r->s.number = line->number;
    if (capture_claim_port(r, near->num, near->port_place) != PMIXFAB_OK)
        return r->s.rc;
    if (far->num != 0)
        peer = (struct capture_peer){.guid = far->node,
                                     .port_guid = far->type == NODE_TYPE_SWITCH ? 0 : far->guid,
                                     .column = (uint16_t)scan_column(&r->s, far->place),
                                     .port = (uint8_t)far->num,
                                     .is_switch = far->type == NODE_TYPE_SWITCH};
    return capture_add_port(r, &port, &peer);
}

/* Add the node of these n lines. */
static int add_told_node(struct reader *r, const struct fab_key *keys, uint32_t n)
{
    const struct told_line *lines = r->told.lines, *first = &lines[keys[0].index], *lowest = first;
    struct fab_node node = {.guid = first->near.node,
                            .system_guid = first->near.system_guid,
                            .vendor_id = first->near.vendor_id,
                            .device_id = first->near.device_id,
                            .line = first->number,
                            .num_ports = first->near.num_ports};
    for (uint32_t i = 0; i < n; i++) {
        const struct told_line *line = &lines[keys[i].index];
        if (first->near.num_ports == 0 && line->near.num > node.num_ports)
            node.num_ports = (uint8_t)line->near.num;
        if (line->near.num < lowest->near.num)
            lowest = line;
    }
    node.kind = (uint8_t)node_kind(first->near.type, node.vendor_id, node.device_id, first->near.name ?: "",
                                   first->near.name_len);
    if (node.kind == FAB_SWITCH)
        node.lid = (uint16_t)first->near.lid;
    node.desc = node_desc(r->c.inv, first->near.name, first->near.name_len);
    if (node.desc == FAB_NONE)
        return fab_fail(r->c.err, PMIXFAB_ERR_NOMEM, "%s: out of memory", r->c.file);
    r->s.line = first->start;
    r->s.number = first->number;
    int rc = capture_add_node(r, &node, (uint16_t)scan_column(&r->s, first->near.place));
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        if (lines[keys[i].index].state != FAB_PORT_DOWN)
            rc = add_told_port(r, &lines[keys[i].index]);
    /* as in a record without a cable: the HCA exists, with its first port */
    if (rc == PMIXFAB_OK && node.kind == FAB_HCA && r->c.nodes[r->node].n_ports == 0)
        rc = add_told_port(r, lowest);
    return rc;
}

/* Add nodes in the order of their first lines. `order` has room for one key for each line. */
static int add_told_nodes(struct reader *r, struct told_index *index, struct fab_key *order)
{
    const uint32_t n = r->told.n;
    uint32_t n_nodes = 0;
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < n; i++)
        index->by_node[i] = (struct fab_key){r->told.lines[i].near.node, i};
    fab_radix_sort(index->by_node, index->scratch, n);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || index->by_node[i].value != index->by_node[i - 1].value)
            order[n_nodes++] = (struct fab_key){index->by_node[i].index, i};
    fab_radix_sort(order, index->scratch, n_nodes);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n_nodes; i++) {
        const uint32_t first = order[i].index;
        uint32_t end = first + 1;
        while (end < n && index->by_node[end].value == index->by_node[first].value)
            end++;
        rc = add_told_node(r, &index->by_node[first], end - first);
    }
    return rc;
}

int capture_build_told(struct reader *r)
{
    struct told *told = &r->told;
    const size_t room = 2 * (size_t)told->n; /* each line may also be used for its other end */
    struct fab_key *keys = malloc(5 * room * sizeof(*keys));
    struct told_index index = {keys, keys + room, keys + 2 * room, keys + 3 * room, told->n, 0};
    int rc = PMIXFAB_OK;
    if (keys == NULL)
        return capture_no_room(r, PMIXFAB_ERR_NOMEM);
    r->s.unended = false;
    if (told->lines[0].near.node == 0)
        probe_note(r->c.sink, PMIXFAB_LOG_INFO,
                   "%s: a record of this kind has no GUIDs of HCAs, no vendors and no chassis: each HCA gets "
                   "the GUID of its first port",
                   r->c.file);
    sort_by_port(told, &index);
    const bool named = told->lines[0].near.node != 0;
    name_nodes(told);
    if (!named)
        join_ports_of_hcas(told, &index);
    index.n_lids = 0;
    for (uint32_t i = 0; i < told->n; i++)
        if (told->lines[i].near.lid != 0)
            index.by_lid[index.n_lids++] =
                (struct fab_key){(uint64_t)told->lines[i].near.lid << 8 | told->lines[i].near.num, i};
    fab_radix_sort(index.by_lid, index.scratch, index.n_lids);
    find_far_ends(told, &index);
    if (told->far_is_told)
        rc = tell_far_ends(r, &index);
    if (rc == PMIXFAB_OK)
        rc = add_told_nodes(r, &index, keys + 4 * room);
    free(keys);
    return rc;
}
