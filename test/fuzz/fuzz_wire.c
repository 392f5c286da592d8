/*
 * Any bytes at all in the sweep's pipe: refused, or a finished inventory that can be named, compared and sent
 * on. A mutation rarely meets a checksum, so the same bytes are tried a second time with size and checksum
 * made right.
 */
#include <stdlib.h>
#include <string.h>

#include "test/unit/wire_seal.h"
#include "topo/changes/changes.h"
#include "topo/model/inventory_wire.h"
#include "topo/model/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

/* What was let in is as good as an inventory of our own. */
static void use(struct fab_inventory *inv)
{
    struct fab_inventory back, merged, nothing;
    struct fab_names *names = NULL;
    struct fab_diff diff;
    void *bytes = NULL;
    size_t size = 0;

    must(inv->finished);
    must(fab_wire_encode(inv, &bytes, &size) == 0);
    must(fab_wire_decode(bytes, size, &back, NULL) == 0);
    must(fab_inventory_equal(inv, &back));
    fab_inventory_init(&merged);
    must(fab_inventory_merge(&merged, inv, NULL) == 0 && fab_inventory_finish(&merged, NULL) == 0);
    must(fab_inventory_merge(&merged, inv, NULL) == 0 && fab_inventory_finish(&merged, NULL) == 0);
    must(merged.n_nodes == inv->n_nodes && merged.n_ports == inv->n_ports);
    must(fab_names_new(NULL, &names, NULL) == 0 && fab_names_apply(names, inv, NULL) == 0);
    fab_inventory_init(&nothing);
    must(fab_diff_compute(&nothing, inv, &diff) == 0);
    fab_diff_destroy(&diff);
    must(fab_diff_compute(&back, inv, &diff) == 0);
    must((diff.n == 0) == fab_inventory_equal(&back, inv));
    fab_diff_destroy(&diff);
    fab_names_free(names);
    fab_inventory_destroy(&merged);
    fab_inventory_destroy(&back);
    free(bytes);
}

static void try_bytes(const uint8_t *bytes, size_t size)
{
    struct fab_inventory inv;
    struct fab_err err = {{0}};

    if (fab_wire_decode(bytes, size, &inv, &err) == 0)
        use(&inv);
    else
        must(err.text[0] != '\0' && inv.nodes == NULL);
    fab_inventory_destroy(&inv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t head[16] = {'f', 'a', 'b', 'w', 'i', 'r', 'e', '\n', 1};

    try_bytes(data, size);
    if (size < FAB_WIRE_HEAD)
        return 0;
    uint8_t *sealed = malloc(size);
    if (sealed == NULL)
        return 0;
    memcpy(sealed, data, size);
    memcpy(sealed, head, sizeof(head));
    wire_seal(sealed, size);
    try_bytes(sealed, size);
    free(sealed);
    return 0;
}
