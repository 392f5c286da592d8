/* compile_facts.c - what the hosts say of their devices, written into a snapshot. */
#include <stdlib.h>
#include <string.h>

#include "topo/plane/compile_priv.h"

static bool known_place(const struct fab_locality *place)
{
    return place->card != 0 || place->sw != 0 || place->numa != 0 || place->package != 0;
}

void fab_snapshot_count_facts(struct snap_build *b)
{
    const struct fab_details *details = b->details;
    uint64_t facts = 0;

    for (uint32_t i = 0; i < b->plane->n_devices; i++) {
        uint32_t port = b->plane->devices[i].port;
        facts += b->plane->devices[i].compute;
        if (details == NULL)
            continue;
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

/* Where the text of fact number `at` of a device stood in the last snapshot, perhaps; 0: nobody knows. */
static uint32_t past_text(const struct snap_build *b, uint32_t device, uint32_t at, uint8_t kind)
{
    uint32_t n;
    const struct snap_fact *past = fab_snapshot_reuse_facts(b, device, &n);
    if (at < n && past[at].kind == kind) /* mostly it has as many as it had */
        return past[at].text;
    for (uint32_t f = 0; f < n; f++)
        if (past[f].kind == kind)
            return past[f].text;
    return 0;
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
    /* A text stands once in the details, so its place there says where it went; 0: nowhere yet. */
    uint32_t *known = calloc(details != NULL ? details->pool_size : 1, sizeof(*known));
    if (known == NULL)
        b->strings.error = PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; known != NULL && i < b->plane->n_devices; i++) {
        uint32_t port = b->plane->devices[i].port, first = details != NULL ? details->first[port] : 0;
        for (uint32_t f = first; details != NULL && f < details->first[port + 1]; f++) {
            const struct fab_detail *detail = &details->facts[f];
            uint32_t *text = &known[detail->text];
            if (*text == 0)
                *text = fab_strings_take(&b->strings, past_text(b, i, f - first, detail->kind),
                                         details->pool + detail->text);
            facts[n++] = (struct snap_fact){
                .text = *text,
                .sources = detail->sources,
                .kind = detail->kind,
                .flags = detail->flags,
            };
        }
        if (b->plane->devices[i].compute) {
            const uint32_t past = past_text(b, i, n - at[i], FAB_FACT_COMPUTE);
            facts[n++] = (struct snap_fact){.text = fab_strings_take(&b->strings, past, "yes"),
                                            .sources = 1u << FAB_FROM_SUBNET,
                                            .kind = FAB_FACT_COMPUTE,
                                            .flags = FAB_DETAIL_CHOSEN};
        }
        at[i + 1] = n;
    }
    free(known);
}
