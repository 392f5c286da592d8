/* store_inventory.c - reading the inventory back, as fab_inventory_equal() to what was published. */

#include "fabricd/store/tables_priv.h"
#include "topo/base/search.h"

int store_inventory_prepare(struct store *store, struct fab_err *err)
{
    const struct store_sql list[] = {
        {&store->subnets, "SELECT number, prefix FROM subnet ORDER BY number"},
        {&store->nodes, "SELECT " STORE_NODE_COLUMNS " FROM node ORDER BY guid"},
        {&store->ports, "SELECT " STORE_PORT_COLUMNS " FROM port ORDER BY node, num"},
        {&store->links, "SELECT a_node, a_num, b_node, b_num FROM link ORDER BY a_node, a_num"},
        {&store->digest, "SELECT digest FROM inventory"},
    };
    return store_prepare(store, list, sizeof list / sizeof list[0], err);
}

/* What one SELECT's rows go through. */
struct reading {
    struct store *store;
    sqlite3_stmt *stmt;
    struct fab_inventory *inv;
    struct fab_err *err;
    bool bad;      /* a number that cannot be */
    uint32_t node; /* ports: the node of the last one */
};

static uint64_t column_number(struct reading *r, int column, uint64_t max)
{
    return store_number(r->stmt, column, max, &r->bad);
}

/* A member is as large a number as it holds. */
#define MAX_OF(member) (UINT64_MAX >> (64 - 8 * sizeof(member)))
#define READ(member)   row.member = (typeof(row.member))column_number(r, ++column, MAX_OF(row.member));

static uint32_t column_string(struct reading *r, int column)
{
    const void *text = sqlite3_column_blob(r->stmt, column);
    int size = sqlite3_column_bytes(r->stmt, column);
    if (size <= 0)
        return 0;
    return text == NULL ? FAB_NONE : fab_inventory_string(r->inv, text, (size_t)size);
}

static int inventory_corrupt(const struct reading *r, const char *table)
{
    return fab_fail(r->err, PMIXFAB_ERR_CORRUPT,
                    "store %s: table %s holds what no inventory can: " STORE_RESTORE, r->store->path, table);
}

static int inventory_nomem(const struct reading *r)
{
    return fab_fail(r->err, PMIXFAB_ERR_NOMEM, "store %s: out of memory", r->store->path);
}

/* What came of adding an element that was read. */
static int inventory_added(const struct reading *r, int rc, const char *table)
{
    if (rc == PMIXFAB_OK)
        return rc;
    return rc == PMIXFAB_ERR_NOMEM ? inventory_nomem(r) : inventory_corrupt(r, table);
}

static int read_subnet(struct reading *r)
{
    uint64_t i = column_number(r, 0, FAB_MAX_SUBNETS - 1);
    uint64_t prefix = column_number(r, 1, UINT64_MAX);
    if (r->bad || i != r->inv->n_subnets)
        return inventory_corrupt(r, "subnet");
    r->inv->subnets[r->inv->n_subnets++].prefix = prefix;
    return PMIXFAB_OK;
}

static int inventory_read_node(struct reading *r)
{
    struct fab_node row = {
        .guid = column_number(r, 0, UINT64_MAX),
        .desc = column_string(r, 1),
        .host = column_string(r, 2),
        .name = column_string(r, 3),
    };
    int column = 3;
    STORE_NODE_NUMBERS(READ)
    if (r->bad || row.missing > 1)
        return inventory_corrupt(r, "node");
    if (row.desc == FAB_NONE || row.host == FAB_NONE || row.name == FAB_NONE)
        return inventory_nomem(r);
    return inventory_added(r, fab_inventory_add_node(r->inv, &row, NULL), "node");
}

/* Nodes stand in SQLite's order, by signed GUID, until the inventory is finished; so do ports. */
static int64_t key_of(const struct fab_inventory *inv, uint32_t node)
{
    return (int64_t)inv->nodes[node].guid;
}

static int inventory_read_port(struct reading *r)
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
    STORE_PORT_NUMBERS(READ)
    if (r->bad || row.missing > 1 || r->node == inv->n_nodes || key_of(inv, r->node) != guid)
        return inventory_corrupt(r, "port");
    return inventory_added(r, fab_inventory_add_port(inv, &row, NULL), "port");
}

/* The port (node GUID, number) among those that were read; FAB_NONE. */
static uint32_t reading_find_port(const struct fab_inventory *inv, int64_t guid, uint64_t num)
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
    uint32_t a = reading_find_port(r->inv, (int64_t)guid_a, num_a);
    uint32_t b = reading_find_port(r->inv, (int64_t)guid_b, num_b);
    if (r->bad || a == FAB_NONE || b == FAB_NONE || fab_inventory_link(r->inv, a, b) != PMIXFAB_OK)
        return inventory_corrupt(r, "link");
    return PMIXFAB_OK;
}

static int read_table(struct reading *r, sqlite3_stmt *stmt, int (*row)(struct reading *))
{
    int rc;
    r->stmt = stmt;
    while ((rc = store_step(r->store, stmt, "reading the inventory", r->err)) == 1) {
        rc = row(r);
        if (rc != PMIXFAB_OK)
            break;
    }
    sqlite3_reset(stmt);
    return rc;
}

int store_read_digest(struct store *store, uint64_t *digest, bool *found, struct fab_err *err)
{
    int rc = store_step(store, store->digest, "reading the inventory", err);
    *found = rc == 1;
    *digest = rc == 1 ? (uint64_t)sqlite3_column_int64(store->digest, 0) : 0;
    sqlite3_reset(store->digest);
    return rc == 1 ? PMIXFAB_OK : rc;
}

/* Sort, and hold what was read against what was written. */
static int inventory_verify(struct reading *r)
{
    uint64_t digest;
    bool found;
    struct fab_err why = {0};
    int rc = fab_inventory_finish(r->inv, &why);
    if (rc == PMIXFAB_ERR_NOMEM)
        return inventory_nomem(r);
    if (rc != PMIXFAB_OK)
        return fab_fail(r->err, PMIXFAB_ERR_CORRUPT,
                        "store %s: the inventory contradicts itself (%.160s): " STORE_RESTORE, r->store->path,
                        why.text);
    rc = store_read_digest(r->store, &digest, &found, r->err);
    if (rc != PMIXFAB_OK)
        return rc;
    bool empty = r->inv->n_nodes == 0 && r->inv->n_ports == 0 && r->inv->n_subnets == 0;
    if (found ? digest != store_inventory_digest(r->inv) : !empty)
        return fab_fail(r->err, PMIXFAB_ERR_CORRUPT,
                        "store %s: the inventory is not the one that was written: " STORE_RESTORE,
                        r->store->path);
    return PMIXFAB_OK;
}

int store_load_inventory(struct store *store, struct fab_inventory *inv, struct fab_err *err)
{
    fab_inventory_init(inv);
    struct reading r = {.store = store, .inv = inv, .err = err};
    int rc = read_table(&r, store->subnets, read_subnet);
    if (rc == PMIXFAB_OK)
        rc = read_table(&r, store->nodes, inventory_read_node);
    if (rc == PMIXFAB_OK)
        rc = read_table(&r, store->ports, inventory_read_port);
    if (rc == PMIXFAB_OK)
        rc = read_table(&r, store->links, read_link);
    if (rc == PMIXFAB_OK)
        rc = inventory_verify(&r);
    sqlite3_db_release_memory(store->db);
    if (rc != PMIXFAB_OK)
        fab_inventory_destroy(inv);
    return rc;
}
