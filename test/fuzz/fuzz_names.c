/*
 * Any text as a node-name-map, and its lines as node descriptions: refused with a place, or read; and every
 * name that comes out is clean.
 */
#include <stdlib.h>
#include <string.h>

#include "topo/base/text.h"
#include "topo/model/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

static void check_name(const char *name, const char *not_in)
{
    char clean[1024];
    size_t n = fab_text_clean(clean, sizeof(clean), name, strlen(name), not_in);
    must(n > 0 && strcmp(clean, name) == 0);
}

/* Nodes of every kind with the text's lines as descriptions. */
static void fill(struct fab_inventory *inv, const char *text, size_t size)
{
    uint64_t guid = 0x10;

    for (size_t at = 0; at <= size && guid < 0x50; guid++) {
        const char *end = at < size ? memchr(text + at, '\n', size - at) : NULL;
        size_t len = (end == NULL ? size : (size_t)(end - text)) - at;
        struct fab_node node = {.guid = guid, .kind = (uint8_t)(guid % 3 == 0 ? 1 + guid % 4 : FAB_HCA)};
        node.num_ports = 1;
        node.desc = fab_inventory_string(inv, text + at, len);
        must(node.desc != FAB_NONE && fab_inventory_add_node(inv, &node, NULL) == 0);
        at += len + 1;
    }
    must(fab_inventory_finish(inv, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char empty[1];
    const char *text = size > 0 ? (const char *)data : empty;
    struct fab_names *names = NULL;
    struct fab_inventory inv;
    struct fab_err err = {{0}};

    must(fab_names_new(size % 4 == 0 ? "^([^ ]*)( (.*))?$" : NULL, &names, NULL) == 0);
    if (fab_names_map(names, "map", text, size, &err) != 0)
        must(strncmp(err.text, "map:", 4) == 0);
    fab_inventory_init(&inv);
    fill(&inv, text, size);
    must(fab_names_apply(names, &inv, NULL) == 0);
    for (uint32_t i = 0; i < inv.n_nodes; i++) {
        check_name(fab_str(&inv, inv.nodes[i].name), NULL);
        if (inv.nodes[i].kind == FAB_HCA)
            check_name(fab_str(&inv, inv.nodes[i].host), ",;:");
    }
    fab_names_free(names);
    fab_inventory_destroy(&inv);
    return 0;
}
