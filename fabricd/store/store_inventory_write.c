/*
 * store_inventory_write.c - writing the inventory: only the rows that differ.
 *
 * Both inventories are sorted alike, so one walk over both finds what went, what came and what changed.
 * Cables are cut before ports go and ports before nodes, and made in the opposite order; so every foreign key
 * holds after each statement.
 */
#include <string.h>

#include "fabricd/store/tables_priv.h"

#define PLACE(number)   ", ?"
#define ASSIGN(number)  ", " #number " = ?"
#define IS_SAME(number) &&b->number == a->number
#define BIND(number)    rc |= sqlite3_bind_int64(stmt, ++last, (int64_t)row->number);

int store_rows_prepare(struct store *store, struct fab_err *err)
{
    const struct store_sql list[] = {
        {&store->subnet_put, "INSERT INTO subnet (number, prefix) VALUES (?1, ?2)"
                             " ON CONFLICT (number) DO UPDATE SET prefix = excluded.prefix"},
        {&store->subnet_cut, "DELETE FROM subnet WHERE number >= ?1"},
        {&store->node_insert,
         "INSERT INTO node (" STORE_NODE_COLUMNS ") VALUES (?, ?, ?, ?" STORE_NODE_NUMBERS(PLACE) ")"},
        {&store->node_update, "UPDATE node SET description = ?2, host = ?3, name = ?4" STORE_NODE_NUMBERS(
                                  ASSIGN) " WHERE guid = ?1"},
        {&store->node_delete, "DELETE FROM node WHERE guid = ?1"},
        {&store->port_insert,
         "INSERT INTO port (" STORE_PORT_COLUMNS ") VALUES (?, ?, ?" STORE_PORT_NUMBERS(PLACE) ")"},
        {&store->port_update,
         "UPDATE port SET guid = ?3" STORE_PORT_NUMBERS(ASSIGN) " WHERE node = ?1 AND num = ?2"},
        {&store->port_delete, "DELETE FROM port WHERE node = ?1 AND num = ?2"},
        {&store->link_insert, "INSERT INTO link (a_node, a_num, b_node, b_num) VALUES (?1, ?2, ?3, ?4)"},
        {&store->link_delete,
         "DELETE FROM link WHERE a_node = ?1 AND a_num = ?2 AND b_node = ?3 AND b_num = ?4"},
        {&store->digest_put, "INSERT INTO inventory (id, digest) VALUES (1, ?1)"
                             " ON CONFLICT (id) DO UPDATE SET digest = excluded.digest"},
    };
    return store_prepare(store, list, sizeof list / sizeof list[0], err);
}

struct writing {
    struct store *store;
    const struct fab_inventory *before, *after;
    struct fab_err *err;
};

/* ---- the walk ---- */

typedef int (*order_fn)(const struct writing *w, uint32_t b, uint32_t a);
/* An element of before and its like in after; FAB_NONE where one has none. */
typedef int (*pair_fn)(const struct writing *w, uint32_t b, uint32_t a);

static int rows_merge_walk(const struct writing *w, uint32_t n_before, uint32_t n_after, order_fn order,
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

static int rows_compare_nodes(const struct writing *w, uint32_t b, uint32_t a)
{
    uint64_t before = w->before->nodes[b].guid, after = w->after->nodes[a].guid;
    return (before > after) - (before < after);
}

static int rows_compare_ports(const struct writing *w, uint32_t b, uint32_t a)
{
    const struct fab_port *before = &w->before->ports[b], *after = &w->after->ports[a];
    int c = rows_compare_nodes(w, before->node, after->node);
    return c != 0 ? c : before->num - after->num;
}

static int rows_merge_nodes(const struct writing *w, pair_fn visit)
{
    return rows_merge_walk(w, w->before->n_nodes, w->after->n_nodes, rows_compare_nodes, visit);
}

static int walk_ports(const struct writing *w, pair_fn visit)
{
    return rows_merge_walk(w, w->before->n_ports, w->after->n_ports, rows_compare_ports, visit);
}

static uint64_t row_port_guid(const struct fab_inventory *inv, uint32_t port)
{
    return inv->nodes[inv->ports[port].node].guid;
}

/* ---- nodes ---- */

static bool row_same_text(const struct writing *w, uint32_t before, uint32_t after)
{
    return strcmp(fab_str(w->before, before), fab_str(w->after, after)) == 0;
}

static bool row_same_node(const struct writing *w, const struct fab_node *b, const struct fab_node *a)
{
    return true STORE_NODE_NUMBERS(IS_SAME) && row_same_text(w, b->desc, a->desc) &&
           row_same_text(w, b->host, a->host) && row_same_text(w, b->name, a->name);
}

static int delete_node(const struct writing *w, uint32_t b, uint32_t a)
{
    if (a != FAB_NONE)
        return PMIXFAB_OK;
    sqlite3_stmt *stmt = w->store->node_delete;
    int bound = sqlite3_bind_int64(stmt, 1, (int64_t)w->before->nodes[b].guid);
    return store_run_one(w->store, stmt, bound, "removing a node", w->err);
}

static int bind_node(sqlite3_stmt *stmt, const struct fab_inventory *inv, const struct fab_node *row)
{
    const char *desc = fab_str(inv, row->desc);
    int last = 4, rc = sqlite3_bind_int64(stmt, 1, (int64_t)row->guid);
    rc |= sqlite3_bind_blob64(stmt, 2, desc, strlen(desc), SQLITE_STATIC);
    rc |= store_bind_text(stmt, 3, fab_str(inv, row->host));
    rc |= store_bind_text(stmt, 4, fab_str(inv, row->name));
    STORE_NODE_NUMBERS(BIND)
    return rc;
}

static int row_put_node(const struct writing *w, uint32_t b, uint32_t a)
{
    if (a == FAB_NONE)
        return PMIXFAB_OK;
    const struct fab_node *node = &w->after->nodes[a];
    if (b != FAB_NONE && row_same_node(w, &w->before->nodes[b], node))
        return PMIXFAB_OK;
    sqlite3_stmt *stmt = b == FAB_NONE ? w->store->node_insert : w->store->node_update;
    return store_run_one(w->store, stmt, bind_node(stmt, w->after, node), "writing a node", w->err);
}

/* ---- ports ---- */

static bool same_port(const struct fab_port *b, const struct fab_port *a)
{
    return b->guid == a->guid STORE_PORT_NUMBERS(IS_SAME);
}

static int delete_port(const struct writing *w, uint32_t b, uint32_t a)
{
    if (a != FAB_NONE)
        return PMIXFAB_OK;
    sqlite3_stmt *stmt = w->store->port_delete;
    int bound = sqlite3_bind_int64(stmt, 1, (int64_t)row_port_guid(w->before, b));
    bound |= sqlite3_bind_int(stmt, 2, w->before->ports[b].num);
    return store_run_one(w->store, stmt, bound, "removing a port", w->err);
}

static int row_put_port(const struct writing *w, uint32_t b, uint32_t a)
{
    if (a == FAB_NONE)
        return PMIXFAB_OK;
    const struct fab_port *row = &w->after->ports[a];
    if (b != FAB_NONE && same_port(&w->before->ports[b], row))
        return PMIXFAB_OK;
    sqlite3_stmt *stmt = b == FAB_NONE ? w->store->port_insert : w->store->port_update;
    int last = 3, rc = sqlite3_bind_int64(stmt, 1, (int64_t)row_port_guid(w->after, a));
    rc |= sqlite3_bind_int(stmt, 2, row->num);
    rc |= sqlite3_bind_int64(stmt, 3, (int64_t)row->guid);
    STORE_PORT_NUMBERS(BIND)
    return store_run_one(w->store, stmt, rc, "writing a port", w->err);
}

/* ---- cables: each stands at the lower of its two ports ---- */

static bool has_link(const struct fab_inventory *inv, uint32_t port)
{
    return port != FAB_NONE && inv->ports[port].peer != FAB_NONE && inv->ports[port].peer > port;
}

/* b and a are one port. */
static bool same_link(const struct writing *w, uint32_t b, uint32_t a)
{
    if (!has_link(w->before, b) || !has_link(w->after, a))
        return false;
    return rows_compare_ports(w, w->before->ports[b].peer, w->after->ports[a].peer) == 0;
}

static int run_link(const struct writing *w, sqlite3_stmt *stmt, const struct fab_inventory *inv,
                    uint32_t port, const char *doing)
{
    uint32_t peer = inv->ports[port].peer;
    int bound = sqlite3_bind_int64(stmt, 1, (int64_t)row_port_guid(inv, port));
    bound |= sqlite3_bind_int(stmt, 2, inv->ports[port].num);
    bound |= sqlite3_bind_int64(stmt, 3, (int64_t)row_port_guid(inv, peer));
    bound |= sqlite3_bind_int(stmt, 4, inv->ports[peer].num);
    return store_run_one(w->store, stmt, bound, doing, w->err);
}

static int delete_link(const struct writing *w, uint32_t b, uint32_t a)
{
    if (!has_link(w->before, b) || same_link(w, b, a))
        return PMIXFAB_OK;
    return run_link(w, w->store->link_delete, w->before, b, "removing a cable");
}

static int put_link(const struct writing *w, uint32_t b, uint32_t a)
{
    if (!has_link(w->after, a) || same_link(w, b, a))
        return PMIXFAB_OK;
    return run_link(w, w->store->link_insert, w->after, a, "writing a cable");
}

/* ---- the whole ---- */

static int write_subnets(const struct writing *w)
{
    const struct fab_inventory *before = w->before, *after = w->after;
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < after->n_subnets; i++) {
        if (i < before->n_subnets && before->subnets[i].prefix == after->subnets[i].prefix)
            continue;
        int bound = sqlite3_bind_int64(w->store->subnet_put, 1, i);
        bound |= sqlite3_bind_int64(w->store->subnet_put, 2, (int64_t)after->subnets[i].prefix);
        rc = store_run_one(w->store, w->store->subnet_put, bound, "writing a subnet", w->err);
    }
    if (rc == PMIXFAB_OK && after->n_subnets < before->n_subnets) {
        int bound = sqlite3_bind_int64(w->store->subnet_cut, 1, after->n_subnets);
        rc = store_run(w->store, w->store->subnet_cut, bound, "removing a subnet", w->err);
    }
    return rc;
}

/* Differences can only be written onto what they start from. */
static int check_before(const struct writing *w)
{
    uint64_t stored;
    bool found;
    int rc = store_read_digest(w->store, &stored, &found, w->err);
    if (rc != PMIXFAB_OK)
        return rc;
    bool same = found ? stored == store_inventory_digest(w->before)
                      : w->before->n_nodes == 0 && w->before->n_subnets == 0;
    return same ? PMIXFAB_OK
                : fab_fail(
                      w->err, PMIXFAB_ERR_CONFLICT,
                      "store %s: it does not hold the inventory that the change starts from; restart fabricd",
                      w->store->path);
}

int store_write_inventory(struct store *store, const struct fab_inventory *before,
                          const struct fab_inventory *after, struct fab_err *err)
{
    const struct writing w = {store, before, after, err};
    int rc = check_before(&w);
    if (rc == PMIXFAB_OK)
        rc = write_subnets(&w);
    if (rc == PMIXFAB_OK)
        rc = walk_ports(&w, delete_link);
    if (rc == PMIXFAB_OK)
        rc = walk_ports(&w, delete_port);
    if (rc == PMIXFAB_OK)
        rc = rows_merge_nodes(&w, delete_node);
    if (rc == PMIXFAB_OK)
        rc = rows_merge_nodes(&w, row_put_node);
    if (rc == PMIXFAB_OK)
        rc = walk_ports(&w, row_put_port);
    if (rc == PMIXFAB_OK)
        rc = walk_ports(&w, put_link);
    if (rc != PMIXFAB_OK)
        return rc;
    int bound = sqlite3_bind_int64(store->digest_put, 1, (int64_t)store_inventory_digest(after));
    return store_run_one(store, store->digest_put, bound, "writing the inventory", err);
}
