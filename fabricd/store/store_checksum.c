/*
 * store_checksum.c - what an inventory, a plane and a report say, in one number each.
 *
 * SQLite notices broken pages, not a flipped bit in a row; this does. The order of the bytes is fixed, so
 * that a database may move between machines.
 */
#define XXH_INLINE_ALL /* the state is a variable here, so its layout must be that of the code */
#include <endian.h>
#include <string.h>
#include <xxhash.h>

#include "fabricd/store/tables_priv.h"

static void add_words(XXH3_state_t *state, uint64_t *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        words[i] = htole64(words[i]);
    XXH3_64bits_update(state, words, n * sizeof words[0]);
}

/* With its end, so that two neighbours cannot be cut otherwise. */
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

uint64_t store_plane_digest(const struct store_plane *plane)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    uint64_t words[] = {plane->index, plane->retired, plane->generation, plane->size};
    add_words(&state, words, sizeof words / sizeof words[0]);
    hash_text(&state, plane->name);
    if (plane->size > 0)
        XXH3_64bits_update(&state, plane->snapshot, plane->size);
    return XXH3_64bits_digest(&state);
}

uint64_t store_report_checksum(const struct store_report *report)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    uint64_t words[] = {report->digest, (uint64_t)report->received, report->uid, report->size};
    add_words(&state, words, sizeof words / sizeof words[0]);
    hash_text(&state, report->host);
    if (report->size > 0)
        XXH3_64bits_update(&state, report->bytes, report->size);
    return XXH3_64bits_digest(&state);
}

uint64_t store_announced_checksum(const struct store_report *announced)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    add_words(&state, (uint64_t[]){announced->digest}, 1);
    hash_text(&state, announced->host);
    return XXH3_64bits_digest(&state);
}
