/* slurm_switches.c - the switches and blocks of Slurm's topologies, and what is below them. */
#include "probes/import/slurm.h"
#include "topo/base/array.h"

#define BLOCKS_JOIN "blocks" /* our switch above them */

int slurm_define(struct slurm_reader *r, const struct slurm_switch *defined)
{
    struct wired_node *node;
    if (wiring_find(&r->w, &defined->self) != NULL)
        return wiring_fail(&r->w, defined->self.place, PMIXFAB_ERR_CONFLICT,
                           "a second \"%.*s\" of this topology", (int)defined->self.len, defined->self.name);
    int rc = wiring_node(&r->w, &defined->self, &node);
    if (rc != PMIXFAB_OK)
        return rc;
    if (!FAB_ARRAY_ROOM(&r->switches, &r->room, (uint64_t)r->n_switches + 1))
        return wiring_fail(&r->w, defined->self.place, PMIXFAB_ERR_NOMEM, "out of memory");
    r->switches[r->n_switches] = *defined;
    r->switches[r->n_switches++].node = node;
    return PMIXFAB_OK;
}

int slurm_wire(struct slurm_reader *r)
{
    int rc = PMIXFAB_OK;
    bool blocks = false;
    for (uint32_t i = 0; i < r->n_switches && rc == PMIXFAB_OK; i++) {
        const struct slurm_switch *s = &r->switches[i];
        struct wiring_end list = {.part = s->self.part, .place = s->switches_at, .is_switch = true};
        if (s->switches != NULL)
            rc = wiring_list(&r->w, s->node, s->switches, &list);
        list = (struct wiring_end){.place = s->nodes_at};
        if (rc == PMIXFAB_OK && s->nodes != NULL)
            rc = wiring_list(&r->w, s->node, s->nodes, &list);
        if (rc != PMIXFAB_OK || !s->is_block)
            continue;
        blocks = true;
        struct wiring_link join = {.below = s->node, .place = s->self.place};
        struct wiring_end above = s->self;
        above.name = BLOCKS_JOIN;
        above.len = sizeof(BLOCKS_JOIN) - 1;
        rc = wiring_node(&r->w, &above, &join.above) ?: wiring_cable(&r->w, &join);
    }
    if (blocks && rc == PMIXFAB_OK)
        probe_note(r->sink, PMIXFAB_LOG_INFO,
                   "%s: one switch joins all blocks: which of them stand together by the sizes of blocks is "
                   "passed over",
                   r->w.file);
    return rc;
}
