/* file_records.c - the lines of a node's record in a capture, and the cables, which both ends describe. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "probes/capture/capture_file.h"
#include "probes/capture/file_capture.h"
#include "topo/base/array.h"
#include "topo/base/text.h"

/*
 * ---- the lines of a node's record in a capture.
 *
 * A record is a few `key=value` lines, a line that names the node, and a line for each cabled port:
 *   vendid=0x2c9
 *   devid=0xd2f0
 *   sysimgguid=0x248a070300a1b2c0
 *   switchguid=0x248a070300a1b2c0(248a070300a1b2c0)
 *   Switch  40 "S-248a070300a1b2c0"    # "leaf1" enhanced port 0 lid 3 lmc 0
 *   [1]     "H-98039b0300112200"[1](98039b0300112200)    # "node1 HCA-1" lid 7 4xHDR
 * An HCA's port has its own GUID first: [1](port GUID)  "S-..."[1]  # lid 7 lmc 0 "leaf1" lid 3 4xHDR
 *
 * ibdiagnet2.ibnetdiscover differs: the front panel's name follows a switch's port, as [1](1) and
 * [29](1/8/1), and switchguid= begins with the GUID of the system: switchguid=0xSYSTEM(NODE). Net files
 * written for ibsim lack everything that comes from a subnet manager: port 0, LIDs, rates.
 */

/* Only blanks or a comment may follow. */
static int scan_rest(struct scan *s)
{
    scan_blank(s);
    if (s->at < s->end && *s->at != '#')
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "unexpected text at the end of the line");
    return s->rc;
}

int capture_no_room(struct reader *r, int code)
{
    return scan_fail(&r->s, r->s.line, code, "%s", pmixfab_strerror(code));
}

/* ---- key=value ---- */

static void read_key(struct reader *r, const char *what, uint64_t max, uint64_t *out)
{
    scan_word(&r->s, "0x");
    scan_hex(&r->s, what, max, out);
    r->node = FAB_NONE;
    if (r->head.line == 0)
        r->head.line = r->s.number;
}

static int read_vendor_id(struct reader *r)
{
    uint64_t v = 0;
    if (r->head.has_vendor)
        return scan_fail(&r->s, r->s.line, PMIXFAB_ERR_SYNTAX,
                         "the record begun in line %" PRIu32 " names no node", r->head.line);
    r->head.has_vendor = true;
    read_key(r, "vendor id", 0xffffff, &v);
    r->head.vendor_id = (uint32_t)v;
    return scan_rest(&r->s);
}

static int read_device(struct reader *r)
{
    uint64_t v = 0;
    read_key(r, "device id", 0xffff, &v);
    r->head.device_id = (uint32_t)v;
    return scan_rest(&r->s);
}

static int read_system_guid(struct reader *r)
{
    read_key(r, "system image GUID", UINT64_MAX, &r->head.system_guid);
    return scan_rest(&r->s);
}

/* Read `(98039b0300112200)`, if it is there. */
static void read_port_guid(struct scan *s, uint64_t *guid)
{
    if (!scan_has(s, "("))
        return;
    scan_hex(s, "port GUID", UINT64_MAX, guid);
    scan_word(s, ")");
}

/* Read switchguid=0x200000(200000), caguid=0x100000, rtguid=0x300000 */
static int read_node_guid(struct reader *r)
{
    read_key(r, "node GUID", UINT64_MAX, &r->head.guid);
    read_port_guid(&r->s, &r->head.inner_guid);
    return scan_rest(&r->s);
}

/* ---- the node's line ---- */

int capture_add_node(struct reader *r, const struct fab_node *node, uint16_t column)
{
    struct capture *c = &r->c;
    if (!FAB_ARRAY_ROOM(&c->nodes, &c->cap_nodes, (uint64_t)c->inv->n_nodes + 1))
        return capture_no_room(r, PMIXFAB_ERR_NOMEM);
    int rc = fab_inventory_add_node(c->inv, node, &r->node);
    if (rc != PMIXFAB_OK)
        return capture_no_room(r, rc);
    c->nodes[r->node] = (struct capture_node){
        .guid = node->guid, .index = r->node, .first_port = c->inv->n_ports, .column = column};
    memset(r->seen, 0, sizeof(r->seen));
    r->head = (struct head){0};
    return PMIXFAB_OK;
}

/* Read ` enhanced port 0 lid 6 lmc 0` after a switch's description, or nothing. */
static void read_port0(struct scan *s, struct fab_node *node)
{
    uint32_t lid = 0, lmc = 0;
    scan_blank(s);
    if (s->at == s->end && !s->unended)
        return;
    if (scan_has(s, "enhanced"))
        node->enhanced = 1;
    else if (!scan_has(s, "base"))
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "expected `base port 0` or `enhanced port 0`");
    scan_word(s, " port 0 lid ");
    scan_number(s, "LID", 0, UINT16_MAX, &lid);
    scan_word(s, " lmc ");
    scan_number(s, "LMC", 0, 7, &lmc);
    node->lid = (uint16_t)lid;
    node->lmc = (uint8_t)lmc;
    scan_rest(s);
}

static int read_node(struct reader *r)
{
    struct scan *s = &r->s;
    const enum node_type type = r->type;
    const char letter = type == NODE_TYPE_SWITCH ? 'S' : type == NODE_TYPE_CA ? 'H' : 'R';
    struct fab_node node = {.vendor_id = r->head.vendor_id,
                            .device_id = r->head.device_id,
                            .system_guid = r->head.system_guid,
                            .line = s->number};
    uint32_t ports = 0;
    char said = 0;
    const char *desc = "";
    uint32_t len = 0;

    scan_number(s, "number of ports", 1, 254, &ports);
    scan_blank(s);
    const char *place = s->at;
    scan_node(s, &said, &node.guid);
    if (said != letter)
        scan_fail(s, place, PMIXFAB_ERR_CONFLICT, "a node of this kind is named \"%c-, not \"%c-", letter,
                  said);
    if (r->head.guid != 0 && r->head.guid != node.guid && r->head.inner_guid != node.guid)
        scan_fail(s, place, PMIXFAB_ERR_CONFLICT, "the line before gives the GUID 0x%016" PRIx64,
                  r->head.guid);
    scan_blank(s);
    if (s->at < s->end || s->unended) { /* a net file for ibsim may have no description */
        scan_word(s, "#");
        scan_blank(s);
        scan_quoted(s, &desc, &len);
    }
    node.num_ports = (uint8_t)ports;
    node.kind = (uint8_t)node_kind(type, node.vendor_id, node.device_id, desc, len);
    if (type == NODE_TYPE_SWITCH)
        read_port0(s, &node);
    if (s->rc != PMIXFAB_OK)
        return s->rc;
    node.desc = node_desc(r->c.inv, desc, len);
    if (node.desc == FAB_NONE)
        return capture_no_room(r, PMIXFAB_ERR_NOMEM);
    return capture_add_node(r, &node, (uint16_t)scan_column(s, place));
}

bool capture_is_net_line(const struct scan *s)
{
    static const char *const starts[] = {"Switch", "Hca", "Ca", "Rt"};
    struct scan name = *s;
    uint32_t ports;
    struct fab_err err;
    name.err = &err;
    name.at = s->line;
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        if (scan_has(&name, starts[i]))
            break;
    if (name.at == s->line)
        return false;
    scan_blank(&name);
    scan_number(&name, "", 0, UINT32_MAX, &ports);
    scan_blank(&name);
    if (name.rc != PMIXFAB_OK || !scan_has(&name, "\""))
        return false;
    if (name.end - name.at < 2 || name.at[1] != '-' || *name.at < '?' || *name.at > 'Z')
        return true;
    const char *c = name.at + 2;
    while (c < name.end && fab_hex_digit(*c) >= 0)
        c++;
    return c < name.end && *c != '"';
}

/* Return whether it is `Switch<TAB>40 "S-...`: the node's kind and a blank; move past it. */
static bool is_node_line(struct scan *s, const char *word)
{
    struct scan copy = *s;
    if (!scan_has(&copy, word) || copy.at == copy.end || (*copy.at != ' ' && *copy.at != '\t'))
        return false;
    scan_blank(&copy);
    if ((copy.at < copy.end && *copy.at == ':') || capture_is_net_line(s))
        return false;
    s->at = copy.at;
    return true;
}

line_reader *capture_record_reader(struct reader *r)
{
    static const struct {
        const char *start;
        line_reader *read;
    } keys[] = {{"vendid=", read_vendor_id},       {"devid=", read_device},
                {"sysimgguid=", read_system_guid}, {"switchguid=", read_node_guid},
                {"caguid=", read_node_guid},       {"hcaguid=", read_node_guid},
                {"rtguid=", read_node_guid}};
    static const struct scan_choice nodes[] = {
        {"Switch", NODE_TYPE_SWITCH}, {"Ca", NODE_TYPE_CA}, {"Hca", NODE_TYPE_CA}, {"Rt", NODE_TYPE_ROUTER}};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (scan_has(&r->s, keys[i].start))
            return keys[i].read;
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
        if (is_node_line(&r->s, nodes[i].word)) {
            r->type = nodes[i].value;
            return read_node;
        }
    return NULL;
}

/* ---- a port's line ---- */

int capture_add_port(struct reader *r, const struct fab_port *port, const struct capture_peer *peer)
{
    struct capture *c = &r->c;
    const bool looped = peer->guid == c->inv->nodes[r->node].guid;
    if (looped && c->n_loops++ == 0)
        c->loop_line = port->line;
    if (!FAB_ARRAY_ROOM(&c->peers, &c->cap_peers, (uint64_t)c->inv->n_ports + 1))
        return capture_no_room(r, PMIXFAB_ERR_NOMEM);
    uint32_t index;
    struct fab_port added = *port;
    if (looped) {
        added.state = FAB_PORT_LOOPED;
        added.width = 0;
        added.speed = FAB_SPEED_UNKNOWN;
    }
    int rc = fab_inventory_add_port(c->inv, &added, &index);
    if (rc != PMIXFAB_OK)
        return capture_no_room(r, rc);
    c->peers[index] = *peer;
    c->nodes[r->node].n_ports++;
    return PMIXFAB_OK;
}

/* Skip `[ext 5]`, the number on a chassis's front, in grouped captures. */
static void skip_external(struct scan *s)
{
    uint32_t number;
    if (!scan_has(s, "[ext "))
        return;
    scan_number(s, "external port", 0, 255, &number);
    scan_word(s, "]");
}

/* Skip `(1)`, `(1/8/1)`, `(swp3)`: the front panel's name of a switch's port. */
static void skip_label(struct scan *s)
{
    const char *stop = s->at < s->end && *s->at == '(' ? memchr(s->at, ')', (size_t)(s->end - s->at)) : NULL;
    if (s->rc == PMIXFAB_OK && stop != NULL)
        s->at = stop + 1;
}

static void read_peer(struct scan *s, struct capture_peer *peer)
{
    uint32_t number = 0;
    char letter = 0;
    scan_blank(s);
    peer->column = (uint16_t)scan_column(s, s->at);
    scan_node(s, &letter, &peer->guid);
    scan_port(s, &number);
    skip_external(s);
    scan_blank(s);
    peer->is_switch = letter == 'S';
    if (peer->is_switch)
        skip_label(s);
    else
        read_port_guid(s, &peer->port_guid);
    peer->port = (uint8_t)number;
}

/*
 * Read `# lid 7 lmc 0 "leaf1" lid 3 4xHDR`; for a switch's port the first LID and the LMC are absent. In a
 * net file for ibsim all of it is optional.
 */
static void read_port_comment(struct scan *s, bool is_switch, struct fab_port *port)
{
    uint32_t lid = 0, lmc = 0, peer_lid;
    const char *name;
    uint32_t len;
    scan_blank(s);
    if (s->at == s->end && !s->unended)
        return;
    scan_word(s, "#");
    scan_blank(s);
    if (!is_switch) {
        scan_word(s, "lid ");
        scan_number(s, "LID", 0, UINT16_MAX, &lid);
        scan_word(s, " lmc ");
        scan_number(s, "LMC", 0, 7, &lmc);
        scan_blank(s);
    }
    scan_quoted(s, &name, &len);
    scan_blank(s);
    scan_word(s, "lid ");
    scan_number(s, "LID", 0, UINT16_MAX, &peer_lid);
    scan_blank(s);
    scan_rate(s, &port->width, &port->speed);
    port->lid = (uint16_t)lid;
    port->lmc = (uint8_t)lmc; /* the rest (s=, w=, slot) is not needed */
}

int capture_claim_port(struct reader *r, uint32_t number, const char *place)
{
    struct scan *s = &r->s;
    const unsigned num_ports = r->c.inv->nodes[r->node].num_ports;
    if (s->rc != PMIXFAB_OK)
        return s->rc;
    if (number > num_ports)
        return scan_fail(s, place, PMIXFAB_ERR_RANGE, "port %" PRIu32 ", but the node has 1 to %u", number,
                         num_ports);
    if (r->seen[number / 8] >> (number % 8) & 1)
        return scan_fail(s, place, PMIXFAB_ERR_CONFLICT, "a second line for port %" PRIu32 " of this node",
                         number);
    r->seen[number / 8] |= (uint8_t)(1u << (number % 8));
    return PMIXFAB_OK;
}

int capture_read_port(struct reader *r)
{
    struct scan *s = &r->s;
    struct fab_port port = {.peer = FAB_NONE, .node = r->node, .line = s->number, .state = FAB_PORT_ACTIVE};
    struct capture_peer peer = {0};
    uint32_t number = 0;

    if (r->node == FAB_NONE)
        return scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX, "a port, but no node's record is open here");
    const struct fab_node *node = &r->c.inv->nodes[r->node];
    scan_port(s, &number);
    capture_claim_port(r, number, s->line + 1);
    skip_external(s);
    if (node->kind != FAB_SWITCH)
        read_port_guid(s, &port.guid);
    else
        skip_label(s);
    read_peer(s, &peer);
    read_port_comment(s, node->kind == FAB_SWITCH, &port);
    if (s->rc != PMIXFAB_OK)
        return s->rc;
    port.num = (uint8_t)number;
    return capture_add_port(r, &port, &peer);
}

/* ---- the cables of a capture: each is described by both ends ---- */

#define REMARKS 10 /* about cables whose ends have different rates */

static int same_guid(const void *a, const void *b)
{
    const struct capture_node *x = a, *y = b;
    return x->guid < y->guid ? -1 : x->guid > y->guid;
}

static int capture_compare_guid(const void *a, const void *b)
{
    const struct capture_node *x = a, *y = b;
    int order = same_guid(a, b);
    return order != 0 ? order : x->index < y->index ? -1 : x->index > y->index;
}

static const struct capture_node *capture_find_node(const struct capture *c, uint64_t guid)
{
    const struct capture_node key = {.guid = guid};
    return bsearch(&key, c->nodes, c->inv->n_nodes, sizeof(key), same_guid);
}

static uint32_t capture_find_port(const struct capture *c, const struct capture_node *node, uint8_t num)
{
    for (uint32_t i = node->first_port; i < node->first_port + node->n_ports; i++)
        if (c->inv->ports[i].num == num)
            return i;
    return FAB_NONE;
}

static int capture_check_names(const struct capture *c)
{
    for (uint32_t i = 1; i < c->inv->n_nodes; i++) {
        const struct capture_node *node = &c->nodes[i];
        if (node->guid == node[-1].guid)
            return fab_fail(c->err, PMIXFAB_ERR_CONFLICT,
                            "%s:%" PRIu32 ":%u: a second record of node 0x%016" PRIx64
                            ", the first is in line %" PRIu32 "; remove one",
                            c->file, c->inv->nodes[node->index].line, node->column, node->guid,
                            c->inv->nodes[node[-1].index].line);
    }
    return PMIXFAB_OK;
}

/* Handle a far end without a line of its own. */
static int check_missing(const struct capture *c, uint32_t i, const struct capture_node *far)
{
    const struct capture_peer *peer = &c->peers[i];
    if (far == NULL || far->index + 1 != c->inv->n_nodes)
        return PMIXFAB_OK;
    return fab_fail(c->err, PMIXFAB_ERR_TRUNCATED,
                    "%s:%" PRIu32 ":%u: port %u of node 0x%016" PRIx64
                    " is missing from its record in line %" PRIu32 ", where the file ends: it was cut; "
                    "record it again",
                    c->file, c->inv->ports[i].line, peer->column, peer->port, peer->guid,
                    c->inv->nodes[far->index].line);
}

/* Both ends have lines: check that they name each other. */
static int check_ends(const struct capture *c, uint32_t i, uint32_t j)
{
    const struct fab_port *near = &c->inv->ports[i], *far = &c->inv->ports[j];
    const struct fab_node *far_node = &c->inv->nodes[far->node];
    const struct capture_peer *there = &c->peers[i], *back = &c->peers[j];
    const char *what = NULL;
    if (back->guid != c->inv->nodes[near->node].guid || back->port != near->num)
        what = "port";
    else if (there->port_guid != 0 && far->guid != 0 && there->port_guid != far->guid)
        what = "port GUID";
    else if ((far_node->kind == FAB_SWITCH) != (there->is_switch != 0))
        what = "kind of node";
    if (what == NULL)
        return PMIXFAB_OK;
    return fab_fail(c->err, PMIXFAB_ERR_CONFLICT,
                    "%s:%" PRIu32 ":%u: this cable leads to port %u of node 0x%016" PRIx64 ", but %s:%" PRIu32
                    " contradicts it (%s); record the file again",
                    c->file, near->line, there->column, there->port, there->guid, c->file, far->line, what);
}

/* Compare rates: they differ in a capture that was put together of two, or made while a link came up. */
static void compare_rates(struct capture *c, const struct fab_port *near, const struct fab_port *far)
{
    if (near->speed == FAB_SPEED_UNKNOWN || far->speed == FAB_SPEED_UNKNOWN || near->width == 0 ||
        far->width == 0 || (near->speed == far->speed && near->width == far->width))
        return;
    if (c->n_rates++ < REMARKS)
        probe_note(c->sink, PMIXFAB_LOG_INFO,
                   "%s:%" PRIu32 " and %s:%" PRIu32
                   ": the two ends of this cable have different rates: %ux%s and %ux%s",
                   c->file, near->line, c->file, far->line, near->width, fab_speed_name(near->speed),
                   far->width, fab_speed_name(far->speed));
}

static int capture_connect(struct capture *c, uint32_t i)
{
    const struct fab_port *port = &c->inv->ports[i];
    const struct capture_peer *peer = &c->peers[i];
    if (port->state == FAB_PORT_LOOPED)
        return PMIXFAB_OK;
    const struct capture_node *far = capture_find_node(c, peer->guid);
    if (far != NULL && peer->port > c->inv->nodes[far->index].num_ports)
        return fab_fail(c->err, PMIXFAB_ERR_RANGE,
                        "%s:%" PRIu32 ":%u: node 0x%016" PRIx64
                        " has no port %u, it has 1 to %u (line %" PRIu32 "); record the file again",
                        c->file, port->line, peer->column, peer->guid, peer->port,
                        c->inv->nodes[far->index].num_ports, c->inv->nodes[far->index].line);
    uint32_t other = far != NULL ? capture_find_port(c, far, peer->port) : FAB_NONE;
    if (other == FAB_NONE)
        return check_missing(c, i, far);
    int rc = check_ends(c, i, other);
    if (rc == PMIXFAB_OK && other > i)
        rc = fab_inventory_link(c->inv, i, other);
    if (rc == PMIXFAB_OK && other > i)
        compare_rates(c, port, &c->inv->ports[other]);
    return rc;
}

int capture_join(struct capture *c)
{
    qsort(c->nodes, c->inv->n_nodes, sizeof(*c->nodes), capture_compare_guid);
    int rc = capture_check_names(c);
    for (uint32_t i = 0; i < c->inv->n_ports && rc == PMIXFAB_OK; i++)
        rc = capture_connect(c, i);
    if (rc == PMIXFAB_OK && c->n_rates > REMARKS)
        probe_note(c->sink, PMIXFAB_LOG_INFO, "%s: so have the ends of %" PRIu32 " more cables", c->file,
                   c->n_rates - REMARKS);
    if (rc == PMIXFAB_OK && c->n_loops > 0)
        probe_note(c->sink, PMIXFAB_LOG_INFO, "%s:%" PRIu32 ": %u port%s cabled to %s own node: left out",
                   c->file, c->loop_line, c->n_loops, c->n_loops == 1 ? " is" : "s are",
                   c->n_loops == 1 ? "its" : "their");
    return rc;
}
