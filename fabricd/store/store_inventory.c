/*
 * store_inventory.c - the last published inventory. Read it back, equal by fab_inventory_equal(). Write only
 * the rows that differ. Compute its digest in one number.
 *
 * SQLite notices broken pages, but not a flipped bit in a row. The digest detects such a bit. The byte order
 * of the digest is fixed, so that a database can move between machines.
 */
#define XXH_INLINE_ALL /* the state is a variable here, so its layout must match the code */
#include <endian.h>
#include <string.h>
#include <xxhash.h>

#include "fabricd/store/store_priv.h"
#include "topo/base/search.h"

/* The numeric columns of a node and of a port, with the names of the members; and all columns, the others
 * first. A member added here is written, compared and read. */
// clang-format off
#define NODE_NUMBERS(X) \
    X(system_guid) X(kind) X(unnamed) X(vendor_id) X(device_id) X(num_ports) X(enhanced) X(lid) X(lmc) \
    X(chassis) X(slot_type) X(slot) X(chip) X(missing)
#define PORT_NUMBERS(X) X(lid) X(lmc) X(state) X(width) X(speed) X(subnet) X(missing)
// clang-format on
#define NAME(number) ", " #number
#define NODE_COLUMNS "guid, description, host, name" NODE_NUMBERS(NAME)
#define PORT_COLUMNS "node, num, guid" PORT_NUMBERS(NAME)

/* ---- the digest ---- */

static void add_words(XXH3_state_t *state, uint64_t *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        words[i] = htole64(words[i]);
    XXH3_64bits_update(state, words, n * sizeof words[0]);
}

/* With its terminator, so that two neighbours cannot be split otherwise. */
static void hash_text(XXH3_state_t *state, const char *text)
{
    XXH3_64bits_update(state, text, strlen(text) + 1);
}

static uint64_t hash_pack(unsigned a, unsigned b, unsigned c, unsigned d)
{
    return (uint64_t)a | (uint64_t)b << 8 | (uint64_t)c << 16 | (uint64_t)d << 24;
}

static void hash_node(XXH3_state_t *state, const struct fab_inventory *inv, const struct fab_node *node)
{
    uint64_t words[] = {
        node->guid,
        node->system_guid,
        (uint64_t)node->vendor_id << 32 | node->device_id,
        (uint64_t)node->n_ports << 32 | (uint64_t)node->lid << 16 | node->chassis,
        hash_pack(node->slot_type, node->slot, node->chip, node->kind) << 32 |
            hash_pack(node->lmc, node->num_ports, node->enhanced,
                      node->unnamed | (unsigned)node->missing << 7),
    };
    add_words(state, words, sizeof words / sizeof words[0]);
    hash_text(state, fab_str(inv, node->desc));
    hash_text(state, fab_str(inv, node->host));
    hash_text(state, fab_str(inv, node->name));
}

/* The port's node is known by its place. */
static void hash_port(XXH3_state_t *state, const struct fab_port *port)
{
    uint64_t words[] = {
        port->guid,
        (uint64_t)port->peer << 32 | (uint64_t)port->lid << 16 | (uint64_t)port->num << 8 | port->lmc,
        hash_pack(port->state, port->width, port->speed, port->subnet) | (uint64_t)port->missing << 32,
    };
    add_words(state, words, sizeof words / sizeof words[0]);
}

uint64_t store_inventory_digest(const struct fab_inventory *inv)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    uint64_t sizes[] = {inv->n_subnets, inv->n_nodes, inv->n_ports};
    add_words(&state, sizes, sizeof sizes / sizeof sizes[0]);
    for (uint32_t i = 0; i < inv->n_subnets; i++)
        add_words(&state, (uint64_t[]){inv->subnets[i].prefix}, 1);
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        hash_node(&state, inv, &inv->nodes[i]);
    for (uint32_t i = 0; i < inv->n_ports; i++)
        hash_port(&state, &inv->ports[i]);
    return XXH3_64bits_digest(&state);
}

uint64_t store_row_digest(uint64_t *numbers, size_t n, const char *text, const void *bytes, size_t size)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    add_words(&state, numbers, n);
    hash_text(&state, text);
    if (size > 0)
        XXH3_64bits_update(&state, bytes, size);
    return XXH3_64bits_digest(&state);
}

/* ---- reading ---- */

/* The state while the rows of a SELECT are read. */
struct reading {
    struct store *store;
    sqlite3_stmt *row;
    struct fab_inventory *inv;
    struct fab_err *err;
    bool bad;      /* an invalid number */
    uint32_t node; /* ports: the node of the last one */
};

static uint64_t column_number(struct reading *r, int column, uint64_t max)
{
    return store_number(r->row, column, max, &r->bad);
}

/* The largest number that a member can hold. */
#define MAX_OF(member) (UINT64_MAX >> (64 - 8 * sizeof(member)))
#define READ(member)   row.member = (typeof(row.member))column_number(r, ++column, MAX_OF(row.member));

static uint32_t column_string(struct reading *r, int column)
{
    const void *text = sqlite3_column_blob(r->row, column);
    int size = sqlite3_column_bytes(r->row, column);
    if (size <= 0)
        return 0;
    return text == NULL ? FAB_NONE : fab_inventory_string(r->inv, text, (size_t)size);
}

static int table_corrupt(const struct reading *r, const char *table)
{
    return store_corrupt(r->store, r->err, "table %s has an invalid row", table);
}

/* Return the result of adding an element that was read. */
static int added(const struct reading *r, int rc, const char *table)
{
    if (rc == PMIXFAB_OK)
        return rc;
    return rc == PMIXFAB_ERR_NOMEM ? store_nomem(r->store, r->err) : table_corrupt(r, table);
}

static int read_subnet(struct reading *r)
{
    uint64_t i = column_number(r, 0, FAB_MAX_SUBNETS - 1);
    uint64_t prefix = column_number(r, 1, UINT64_MAX);
    if (r->bad || i != r->inv->n_subnets)
        return table_corrupt(r, "subnet");
    r->inv->subnets[r->inv->n_subnets++].prefix = prefix;
    return PMIXFAB_OK;
}

static int read_node_row(struct reading *r)
{
    struct fab_node row = {
        .guid = column_number(r, 0, UINT64_MAX),
        .desc = column_string(r, 1),
        .host = column_string(r, 2),
        .name = column_string(r, 3),
    };
    int column = 3;
    NODE_NUMBERS(READ)
    if (r->bad || row.missing > 1)
        return table_corrupt(r, "node");
    if (row.desc == FAB_NONE || row.host == FAB_NONE || row.name == FAB_NONE)
        return store_nomem(r->store, r->err);
    return added(r, fab_inventory_add_node(r->inv, &row, NULL), "node");
}

/* Until the inventory is finished, nodes are in SQLite's order, by signed GUID; so are ports. */
static int64_t key_of(const struct fab_inventory *inv, uint32_t node)
{
    return (int64_t)inv->nodes[node].guid;
}

static int read_port_row(struct reading *r)
{
    struct fab_inventory *inv = r->inv;
    int64_t guid = (int64_t)column_number(r, 0, UINT64_MAX);
    while (r->node < inv->n_nodes && key_of(inv, r->node) < guid)
        r->node++;
    struct fab_port row = {
        .node = r->node,
        .peer = FAB_NONE,
        .num = (uint8_t)column_number(r, 1, UINT8_MAX),
        .guid = column_number(r, 2, UINT64_MAX),
    };
    int column = 2;
    PORT_NUMBERS(READ)
    if (r->bad || row.missing > 1 || r->node == inv->n_nodes || key_of(inv, r->node) != guid)
        return table_corrupt(r, "port");
    return added(r, fab_inventory_add_port(inv, &row, NULL), "port");
}

/* Find the port (node GUID, number) among those that were read; FAB_NONE. */
static uint32_t find_read_port(const struct fab_inventory *inv, int64_t guid, uint64_t num)
{
    const struct fab_port *ports = inv->ports;
    uint32_t at = FAB_LOWER_BOUND(0, inv->n_ports, i,
                                  key_of(inv, ports[i].node) < guid ||
                                      (key_of(inv, ports[i].node) == guid && ports[i].num < num));
    return at < inv->n_ports && key_of(inv, ports[at].node) == guid && ports[at].num == num ? at : FAB_NONE;
}

static int read_link(struct reading *r)
{
    uint64_t guid_a = column_number(r, 0, UINT64_MAX), num_a = column_number(r, 1, UINT8_MAX);
    uint64_t guid_b = column_number(r, 2, UINT64_MAX), num_b = column_number(r, 3, UINT8_MAX);
    uint32_t a = find_read_port(r->inv, (int64_t)guid_a, num_a);
    uint32_t b = find_read_port(r->inv, (int64_t)guid_b, num_b);
    if (r->bad || a == FAB_NONE || b == FAB_NONE || fab_inventory_link(r->inv, a, b) != PMIXFAB_OK)
        return table_corrupt(r, "link");
    return PMIXFAB_OK;
}

/* Read the rows of a table, in the order of their keys. */
static int read_table(struct reading *r, const char *sql, int (*fn)(struct reading *))
{
    int rc = store_first(r->store, sql, NULL, "reading the inventory", &r->row, r->err);
    while (rc == 1 && (rc = fn(r)) == PMIXFAB_OK)
        rc = store_next(r->store, r->row, "reading the inventory", r->err);
    store_done(r->row);
    return rc;
}

/* Read the digest of the stored inventory; *found is false if there is none. */
static int read_digest(struct store *store, uint64_t *digest, bool *found, struct fab_err *err)
{
    sqlite3_stmt *row;
    int rc = store_first(store, "SELECT digest FROM inventory", NULL, "reading the inventory", &row, err);
    *found = rc == 1;
    *digest = rc == 1 ? (uint64_t)sqlite3_column_int64(row, 0) : 0;
    store_done(row);
    return rc == 1 ? PMIXFAB_OK : rc;
}

/* Sort, and compare the digests of the read and the written inventory. */
static int verify_inventory(struct reading *r)
{
    uint64_t digest;
    bool found;
    struct fab_err why = {0};
    int rc = fab_inventory_finish(r->inv, &why);
    if (rc == PMIXFAB_ERR_NOMEM)
        return store_nomem(r->store, r->err);
    if (rc != PMIXFAB_OK)
        return store_corrupt(r->store, r->err, "the inventory is inconsistent (%.160s)", why.text);
    rc = read_digest(r->store, &digest, &found, r->err);
    if (rc != PMIXFAB_OK)
        return rc;
    bool empty = r->inv->n_nodes == 0 && r->inv->n_ports == 0 && r->inv->n_subnets == 0;
    if (found ? digest != store_inventory_digest(r->inv) : !empty)
        return store_corrupt(r->store, r->err, "the inventory does not match its digest");
    return PMIXFAB_OK;
}

int store_load_inventory(struct store *store, struct fab_inventory *inv, struct fab_err *err)
{
    fab_inventory_init(inv);
    struct reading r = {.store = store, .inv = inv, .err = err};
    int rc = read_table(&r, "SELECT number, prefix FROM subnet ORDER BY number", read_subnet)
                 ?: read_table(&r, "SELECT " NODE_COLUMNS " FROM node ORDER BY guid", read_node_row)
                 ?: read_table(&r, "SELECT " PORT_COLUMNS " FROM port ORDER BY node, num", read_port_row)
                 ?: read_table(&r, "SELECT a_node, a_num, b_node, b_num FROM link ORDER BY a_node, a_num",
                               read_link)
                 ?: verify_inventory(&r);
    sqlite3_db_release_memory(store->db);
    if (rc != PMIXFAB_OK)
        fab_inventory_destroy(inv);
    return rc;
}

/* ---- writing ---- */

#define PLACE(number)   ", ?"
#define ASSIGN(number)  ", " #number " = ?"
#define IS_SAME(number) &&b->number == a->number
#define VALUE(number)   , INT(row->number)

struct writing {
    struct store *store;
    const struct fab_inventory *before, *after;
    struct fab_err *err;
};

typedef int (*order_fn)(const struct writing *w, uint32_t b, uint32_t a);
/* Process an element of `before` and its counterpart in `after`; FAB_NONE: it has none. */
typedef int (*pair_fn)(const struct writing *w, uint32_t b, uint32_t a);

static int walk_both(const struct writing *w, uint32_t n_before, uint32_t n_after, order_fn order,
                     pair_fn visit)
{
    uint32_t b = 0, a = 0;
    int rc = PMIXFAB_OK;
    while (rc == PMIXFAB_OK && (b < n_before || a < n_after)) {
        int c = b == n_before ? 1 : a == n_after ? -1 : order(w, b, a);
        rc = visit(w, c <= 0 ? b : FAB_NONE, c >= 0 ? a : FAB_NONE);
        b += c <= 0;
        a += c >= 0;
    }
    return rc;
}

static int compare_node_rows(const struct writing *w, uint32_t b, uint32_t a)
{
    uint64_t before = w->before->nodes[b].guid, after = w->after->nodes[a].guid;
    return (before > after) - (before < after);
}

static int compare_ports(const struct writing *w, uint32_t b, uint32_t a)
{
    const struct fab_port *before = &w->before->ports[b], *after = &w->after->ports[a];
    int c = compare_node_rows(w, before->node, after->node);
    return c != 0 ? c : before->num - after->num;
}

static int walk_nodes(const struct writing *w, pair_fn visit)
{
    return walk_both(w, w->before->n_nodes, w->after->n_nodes, compare_node_rows, visit);
}

static int walk_ports(const struct writing *w, pair_fn visit)
{
    return walk_both(w, w->before->n_ports, w->after->n_ports, compare_ports, visit);
}

static uint64_t guid_of(const struct fab_inventory *inv, uint32_t port)
{
    return inv->nodes[inv->ports[port].node].guid;
}

/* ---- nodes ---- */

static bool row_same_text(const struct writing *w, uint32_t before, uint32_t after)
{
    return strcmp(fab_str(w->before, before), fab_str(w->after, after)) == 0;
}

static bool same_node(const struct writing *w, const struct fab_node *b, const struct fab_node *a)
{
    return true NODE_NUMBERS(IS_SAME) && row_same_text(w, b->desc, a->desc) &&
           row_same_text(w, b->host, a->host) && row_same_text(w, b->name, a->name);
}

static int delete_node(const struct writing *w, uint32_t b, uint32_t a)
{
    if (a != FAB_NONE)
        return PMIXFAB_OK;
    return store_run_one(w->store, "DELETE FROM node WHERE guid = ?1", VALUES(INT(w->before->nodes[b].guid)),
                         "removing a node", w->err);
}

static int put_node(const struct writing *w, uint32_t b, uint32_t a)
{
    if (a == FAB_NONE)
        return PMIXFAB_OK;
    const struct fab_node *row = &w->after->nodes[a];
    if (b != FAB_NONE && same_node(w, &w->before->nodes[b], row))
        return PMIXFAB_OK;
    const char *desc = fab_str(w->after, row->desc);
    const struct store_value values[] = {INT(row->guid),
                                         BLOB(desc, strlen(desc)),
                                         TEXT(fab_str(w->after, row->host)),
                                         TEXT(fab_str(w->after, row->name)) NODE_NUMBERS(VALUE),
                                         {0}};
    return store_run_one(
        w->store,
        b == FAB_NONE ? "INSERT INTO node (" NODE_COLUMNS ") VALUES (?, ?, ?, ?" NODE_NUMBERS(PLACE) ")"
                      : "UPDATE node SET description = ?2, host = ?3, name = ?4" NODE_NUMBERS(
                            ASSIGN) " WHERE guid = ?1",
        values, "writing a node", w->err);
}

/* ---- ports ---- */

static bool same_port(const struct fab_port *b, const struct fab_port *a)
{
    return b->guid == a->guid PORT_NUMBERS(IS_SAME);
}

static int delete_port(const struct writing *w, uint32_t b, uint32_t a)
{
    if (a != FAB_NONE)
        return PMIXFAB_OK;
    return store_run_one(w->store, "DELETE FROM port WHERE node = ?1 AND num = ?2",
                         VALUES(INT(guid_of(w->before, b)), INT(w->before->ports[b].num)), "removing a port",
                         w->err);
}

static int put_port(const struct writing *w, uint32_t b, uint32_t a)
{
    if (a == FAB_NONE)
        return PMIXFAB_OK;
    const struct fab_port *row = &w->after->ports[a];
    if (b != FAB_NONE && same_port(&w->before->ports[b], row))
        return PMIXFAB_OK;
    const struct store_value values[] = {
        INT(guid_of(w->after, a)), INT(row->num), INT(row->guid) PORT_NUMBERS(VALUE), {0}};
    return store_run_one(
        w->store,
        b == FAB_NONE ? "INSERT INTO port (" PORT_COLUMNS ") VALUES (?, ?, ?" PORT_NUMBERS(PLACE) ")"
                      : "UPDATE port SET guid = ?3" PORT_NUMBERS(ASSIGN) " WHERE node = ?1 AND num = ?2",
        values, "writing a port", w->err);
}

/* ---- cables: each is stored at the lower of its two ports ---- */

static bool has_link(const struct fab_inventory *inv, uint32_t port)
{
    return port != FAB_NONE && inv->ports[port].peer != FAB_NONE && inv->ports[port].peer > port;
}

/* b and a are the same port. */
static bool same_link(const struct writing *w, uint32_t b, uint32_t a)
{
    if (!has_link(w->before, b) || !has_link(w->after, a))
        return false;
    return compare_ports(w, w->before->ports[b].peer, w->after->ports[a].peer) == 0;
}

static int run_link(const struct writing *w, const char *sql, const struct fab_inventory *inv, uint32_t port,
                    const char *doing)
{
    uint32_t peer = inv->ports[port].peer;
    return store_run_one(w->store, sql,
                         VALUES(INT(guid_of(inv, port)), INT(inv->ports[port].num), INT(guid_of(inv, peer)),
                                INT(inv->ports[peer].num)),
                         doing, w->err);
}

static int delete_link(const struct writing *w, uint32_t b, uint32_t a)
{
    if (!has_link(w->before, b) || same_link(w, b, a))
        return PMIXFAB_OK;
    return run_link(w, "DELETE FROM link WHERE a_node = ?1 AND a_num = ?2 AND b_node = ?3 AND b_num = ?4",
                    w->before, b, "removing a cable");
}

static int put_link(const struct writing *w, uint32_t b, uint32_t a)
{
    if (!has_link(w->after, a) || same_link(w, b, a))
        return PMIXFAB_OK;
    return run_link(w, "INSERT INTO link (a_node, a_num, b_node, b_num) VALUES (?1, ?2, ?3, ?4)", w->after, a,
                    "writing a cable");
}

/* ---- the whole inventory ---- */

static int write_subnets(const struct writing *w)
{
    const struct fab_inventory *before = w->before, *after = w->after;
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < after->n_subnets; i++)
        if (i >= before->n_subnets || before->subnets[i].prefix != after->subnets[i].prefix)
            rc = store_run_one(w->store,
                               "INSERT INTO subnet (number, prefix) VALUES (?1, ?2)"
                               " ON CONFLICT (number) DO UPDATE SET prefix = excluded.prefix",
                               VALUES(INT(i), INT(after->subnets[i].prefix)), "writing a subnet", w->err);
    if (rc == PMIXFAB_OK && after->n_subnets < before->n_subnets)
        rc = store_run(w->store, "DELETE FROM subnet WHERE number >= ?1", VALUES(INT(after->n_subnets)),
                       "removing a subnet", w->err);
    return rc;
}

/* Check that the store has the inventory from which the differences start. */
static int check_before(const struct writing *w)
{
    uint64_t stored;
    bool found;
    int rc = read_digest(w->store, &stored, &found, w->err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (found ? stored == store_inventory_digest(w->before)
              : w->before->n_nodes == 0 && w->before->n_subnets == 0)
        return PMIXFAB_OK;
    return fab_fail(w->err, PMIXFAB_ERR_CONFLICT,
                    "store %s: it does not hold the inventory on which the change is based; restart fabricd",
                    w->store->path);
}

int store_write_inventory(struct store *store, const struct fab_inventory *before,
                          const struct fab_inventory *after, struct fab_err *err)
{
    const struct writing w = {store, before, after, err};
    return check_before(&w)
               ?: write_subnets(&w)
               ?: walk_ports(&w, delete_link)
               ?: walk_ports(&w, delete_port)
               ?: walk_nodes(&w, delete_node)
               ?: walk_nodes(&w, put_node)
               ?: walk_ports(&w, put_port)
               ?: walk_ports(&w, put_link)
               ?: store_run_one(store,
                                "INSERT INTO inventory (id, digest) VALUES (1, ?1)"
                                " ON CONFLICT (id) DO UPDATE SET digest = excluded.digest",
                                VALUES(INT(store_inventory_digest(after))),
                                "writing the inventory", err);
}
