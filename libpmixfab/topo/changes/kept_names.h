/*
 * kept_names.h - an HCA whose host has not named it yet keeps the name that its GUID had.
 *
 * A host names its HCAs late while it boots: until then they say what their firmware or driver says
 * ("MT4129 ConnectX7   Mellanox Technologies", "Intel Infiniband HCA (none)"), or "localhost mlx5_0". Would
 * they go by their GUIDs meanwhile, every index behind them would move twice.
 */
#ifndef FAB_TOPO_CHANGES_KEPT_NAMES_H
#define FAB_TOPO_CHANGES_KEPT_NAMES_H

#include "topo/changes/lost_list.h"

/* What is known beside the inventory that is to be named. */
struct fab_names_known {
    const struct fab_inventory *before; /* finished and named */
    const struct fab_lost *lost;        /* finished; NULL: nothing is known of it */
    /* Told of each HCA of inv that had a name and does not say it: "node1 mlx5_0", and a sentence. NULL
     * allowed. */
    void (*told)(const struct fab_node *node, const char *what, const char *text, bool kept, void *cbdata);
    void *cbdata;
};

/*
 * Of inv (finished and named): an HCA that no pattern and no map names, or whose host is localhost, or that
 * says of what its GUID said before no more than the beginning ("node1" of "node1 hfi1_0"), gets the
 * description that its GUID had, where one of its cables is where it was: at the same port of the same
 * switch, or of the one that is in that one's place (inventory/pairing.h).
 * What was lost meanwhile (lost_list.h) has its name back by the same rules; its description is made of both.
 * An HCA that is elsewhere may be another host's by now: it stays as it is. *n_kept have another description
 * now, and are to be named again. PMIXFAB_ERR_NOMEM.
 */
int fab_keep_names(const struct fab_names_known *known, struct fab_inventory *inv, uint32_t *n_kept);

#endif
