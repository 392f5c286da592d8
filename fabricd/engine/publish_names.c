/* publish_names.c - what the nodes of a sweep are called: what they say, and what hosts say late. */
#include "fabricd/base/log.h"
#include "fabricd/engine/update.h"
#include "topo/base/array.h"
#include "topo/changes/changes.h"

static void tell_late(const struct fab_node *node, const char *what, const char *text, bool kept,
                      void *cbdata)
{
    struct update *update = cbdata;
    struct guids *elsewhere = &update->elsewhere;
    if (kept) {
        elsewhere->failed |= update_verify_name(update, node->guid, text) != PMIXFAB_OK;
        return;
    }
    if (update->otherwise == NULL)
        log_warning("names: %s %s; its host is not known until it names it, or reports it anew", what, text);
    if (FAB_ARRAY_ROOM(&elsewhere->guids, &elsewhere->room, elsewhere->n + 1))
        elsewhere->guids[elsewhere->n++] = node->guid;
    else
        elsewhere->failed = true;
}

int update_name(struct update *update, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    const struct fab_names_known known = {
        .before = &publisher->current, .lost = &publisher->absent.lost, .told = tell_late, .cbdata = update};
    uint32_t n_kept = 0;
    int rc = publish_fill_gaps(publisher, &update->inv);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "out of memory");
    rc = fab_names_apply(publisher->names, &update->inv, err);
    if (rc != PMIXFAB_OK || publisher->current.n_nodes == 0)
        return rc;
    rc = fab_keep_names(&known, &update->inv, &n_kept);
    if (rc != PMIXFAB_OK || update->elsewhere.failed)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    return n_kept == 0 ? PMIXFAB_OK : fab_names_apply(publisher->names, &update->inv, err);
}
