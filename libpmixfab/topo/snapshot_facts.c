/* snapshot_facts.c - what the hosts say of their devices, written into a snapshot. */
#include <stdlib.h>
#include <string.h>

#include "topo/snapshot_build.h"

static bool known_place(const struct fab_locality *place)
{
    return place->card != 0 || place->sw != 0 || place->numa != 0 || place->package != 0;
}

void fab_snapshot_count_facts(struct snap_build *b)
{
    const struct fab_details *details = b->details;
    uint64_t facts = 0;

    if (details == NULL)
        return;
    for (uint32_t i = 0; i < b->plane->n_devices; i++) {
        uint32_t port = b->plane->devices[i].port;
        facts += details->first[port + 1] - details->first[port];
        if (known_place(&details->places[port]))
            b->meta.n_places = b->plane->n_devices;
        if (details->seen[port] == 0) /* of nobody, so why is it here? */
            b->strings.error = PMIXFAB_ERR_INVAL;
    }
    if (facts > UINT32_MAX)
        b->strings.error = PMIXFAB_ERR_RANGE;
    b->meta.n_facts = (uint32_t)facts;
}

/* A text stands once in the details, so its place there says where it went: known[place], 0: nowhere yet. */
static uint32_t add_text(struct snap_build *b, uint32_t place, uint32_t *known)
{
    uint32_t at = known == NULL ? 0 : known[place];
    if (at == 0)
        at = fab_strings_add(&b->strings, b->details->pool + place);
    if (known != NULL)
        known[place] = at;
    return at;
}

void fab_snapshot_write_facts(struct snap_build *b)
{
    const struct fab_details *details = b->details;
    struct fab_locality *places = fab_snapshot_section(b, SNAP_PLACES);
    uint32_t *at = fab_snapshot_section(b, SNAP_FACT_AT), n = 0;
    struct snap_fact *facts = fab_snapshot_section(b, SNAP_FACTS);

    for (uint32_t i = 0; i < b->meta.n_places; i++)
        places[i] = details->places[b->plane->devices[i].port];
    if (b->meta.n_facts == 0)
        return;
    uint32_t *known = calloc(details->pool_size, sizeof(*known)); /* without memory it takes longer */
    for (uint32_t i = 0; i < b->plane->n_devices; i++) {
        uint32_t port = b->plane->devices[i].port;
        for (uint32_t f = details->first[port]; f < details->first[port + 1]; f++) {
            const struct fab_detail *detail = &details->facts[f];
            facts[n++] = (struct snap_fact){
                .text = add_text(b, detail->text, known),
                .sources = detail->sources,
                .kind = detail->kind,
                .flags = detail->flags,
            };
        }
        at[i + 1] = n;
    }
    free(known);
}
