/*
 * export_json.c - all that planes hold in one object: the lists of the commands `planes`, `devices`, ...,
 * each under its name, with the facts of each device.
 */
#include "fabricctl/export/export.h"

#include <string.h>

#include "fabricctl/show/list.h"
#include "fabricctl/show/show_facts.h"

#define VERSION 1 /* another one where a member means something else than before */

static const struct {
    const char *name;
    enum ctl_exit (*rows)(const struct ctl *ctl, const struct ctl_view *view, json_t *into);
} lists[] = {
    {"planes", ctl_planes_table}, {"devices", ctl_devices_table}, {"switches", ctl_switches_table},
    {"links", ctl_links_table},   {"groups", ctl_groups_table},   {"rails", ctl_rails_table},
};

/* Devices stand plane by plane, by index. */
static bool add_facts(const struct ctl_view *view, json_t *devices)
{
    size_t row = 0;

    for (size_t i = 0; i < view->n; i++) {
        struct pmixfab_plane plane;

        if (pmixfab_plane(view->planes[i], &plane) != 0)
            return false;
        for (uint32_t d = 0; d < plane.n_devices; d++, row++)
            if (json_object_set_new(json_array_get(devices, row), "facts",
                                    ctl_facts_json(view->planes[i], d)) != 0)
                return false;
    }
    return true;
}

enum ctl_exit ctl_export_json(struct ctl_export *x)
{
    struct ctl all = *x->ctl; /* args are the format, not names that are asked for */
    json_t *root = json_pack("{s:s, s:i}", "format", "fabricd", "version", VERSION);
    enum ctl_exit status = root != NULL ? CTL_DONE : ctl_nomem();

    all.n_args = 0;
    all.format = CTL_JSON;
    all.snapshots_only =
        true; /* what is known after a sweep only would change the file at each start of fabricd */
    for (size_t i = 0; status == CTL_DONE && i < CTL_COUNT(lists); i++) {
        json_t *rows = json_array();

        status = rows != NULL ? lists[i].rows(&all, x->view, rows) : ctl_nomem();
        if (json_object_set_new(root, lists[i].name, rows) != 0 && status == CTL_DONE)
            status = ctl_nomem();
    }
    if (status == CTL_DONE && !add_facts(x->view, json_object_get(root, "devices")))
        status = ctl_nomem();
    if (status == CTL_DONE)
        return ctl_json_print(x->out, root);
    json_decref(root);
    return status;
}
