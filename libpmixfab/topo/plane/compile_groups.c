/* compile_groups.c - names of groups, units and rails. */
#include <string.h>

#include "topo/plane/compile_priv.h"
#include "topo/snapshot/reader.h"

#define NEAR 2 /* groups that may have come or gone at one place */

/* Where a name stood that is made up of a number. *at: where to go on looking. */
static uint32_t compile_reuse_group(const struct snap_build *b, const char *name, uint32_t *at)
{
    const struct pmixfab *before = b->before;
    if (before == NULL || before->group_names == NULL)
        return 0;
    for (uint32_t g = *at; g < before->meta->n_groups && g <= *at + NEAR; g++) {
        if (strcmp(fab_reader_string(before, before->group_names[g]), name) != 0)
            continue;
        *at = g + 1;
        return before->group_names[g];
    }
    return 0;
}

/* Names of leaves and hosts stand where those do. */
static void compile_write_group_names(struct snap_build *b)
{
    const struct snap_switch *switches = fab_snapshot_section(b, SNAP_SWITCHES);
    const struct snap_host *hosts = fab_snapshot_section(b, SNAP_HOSTS);
    const struct fab_groups *groups = b->groups;
    uint32_t *names = fab_snapshot_section(b, SNAP_GROUP_NAME), past = 0;

    for (uint32_t g = 0; g < b->meta.n_groups; g++) {
        uint32_t first = groups->members[groups->start[g]];
        if (groups->leaf[g] != FAB_NONE)
            names[g] = switches[groups->leaf[g]].name;
        else if (groups->names[g] == b->plane->hosts[first].name)
            names[g] = hosts[first].name;
        else
            names[g] = fab_strings_take(&b->strings, compile_reuse_group(b, groups->names[g], &past),
                                        groups->names[g]);
    }
}

void fab_snapshot_write_groups(struct snap_build *b)
{
    const struct fab_units *units = &b->geometry->units;
    struct snap_rail *rails = fab_snapshot_section(b, SNAP_RAILS);
    struct snap_stray *strays = fab_snapshot_section(b, SNAP_STRAYS);

    compile_write_group_names(b);
    for (uint32_t s = 0; s < b->meta.n_switches; s++) {
        uint32_t unit = units->unit[s];
        rails[s] = (struct snap_rail){unit == FAB_NONE ? FAB_NONE : units->label[unit], units->rail[s]};
    }
    for (uint32_t i = 0; i < b->meta.n_strays; i++)
        strays[i] = (struct snap_stray){units->strays[i].device, units->strays[i].sw,
                                        units->label[units->strays[i].unit]};
}
