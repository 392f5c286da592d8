/*
 * placed.c - the hosts of a job, and what it would feel of them.
 */
#include <stdlib.h>

#include "fabricctl/core/ctl_text.h"
#include "fabricctl/core/table.h"
#include "fabricctl/show/show_place.h"
#include "topo/base/hostlist.h"

/* An answer as it is told. */
struct told {
    const struct ctl_placed *placed;
    struct pmixfab_plane plane;
    struct pmixfab_spread spread;
    const char **names; /* of the hosts */
    char *folded;       /* the names in the short form */
};

static const char *const patterns[PMIXFAB_PATTERNS] = {
    [PMIXFAB_ALL_TO_ALL] = "all_to_all",
    [PMIXFAB_RING] = "ring",
    [PMIXFAB_DOUBLING] = "recursive_doubling",
};

static double told_pairs(const struct told *told)
{
    const double n = told->placed->n;
    return n > 1 ? n * (n - 1) / 2 : 1;
}

/* By how much another choice may be better, at most, as a part of what this one has. */
static double told_distance(const struct told *told)
{
    const struct pmixfab_placement *placement = &told->placed->placement;
    return placement->value == 0 ? 0 : 1 - (double)placement->bound / (double)placement->value;
}

static const char *told_host(const struct told *told, uint32_t host)
{
    const char *name = NULL;
    uint32_t first, n;
    return pmixfab_host(told->placed->fab, host, &name, &first, &n) == 0 ? name : NULL;
}

static void told_shares(const char *past, const double shares[PMIXFAB_PATTERNS])
{
    printf("past their %s: %.1f %% of the messages of all to all, %.1f %% of a ring, %.1f %% of recursive "
           "doubling\n",
           past, 100 * shares[PMIXFAB_ALL_TO_ALL], 100 * shares[PMIXFAB_RING],
           100 * shares[PMIXFAB_DOUBLING]);
}

static void told_text(const struct told *told)
{
    const struct ctl_placed *placed = told->placed;
    const struct pmixfab_spread *spread = &told->spread;

    printf("%s\n%u host%s of plane %s", told->folded, placed->n, placed->n == 1 ? "" : "s", told->plane.name);
    if (placed->objective != NULL)
        printf(", of %u that can be had", placed->placement.n_usable);
    printf("\ncost %llu, %.1f a pair", (unsigned long long)spread->cost,
           (double)spread->cost / told_pairs(told));
    if (placed->objective == NULL)
        printf("; %.1f from each to the next", (double)spread->ring_cost / placed->n);
    else if (placed->placement.bound == placed->placement.value)
        printf("; by %s none is better", placed->objective);
    else
        printf("; by %s another choice is better by %.1f %% at most", placed->objective,
               100 * told_distance(told));
    printf("\non %u leaf switch%s", spread->n_switches, spread->n_switches == 1 ? "" : "es");
    if (spread->n_units > 0)
        printf(" of %u unit%s", spread->n_units, spread->n_units == 1 ? "" : "s");
    if (spread->worst_a != UINT32_MAX) {
        printf("\nworst pair %s - %s: ", told_host(told, spread->worst_a), told_host(told, spread->worst_b));
        if (spread->worst == PMIXFAB_NO_PATH)
            fputs("no path", stdout);
        else
            printf("cost %u, across %u switch%s", spread->worst, spread->worst_switches,
                   spread->worst_switches == 1 ? "" : "es");
    }
    putchar('\n');
    told_shares("leaf", spread->past_leaf);
    if (spread->n_units > 0)
        told_shares("unit", spread->past_unit);
}

static json_t *told_shares_json(const double shares[PMIXFAB_PATTERNS])
{
    json_t *object = json_object();
    for (int p = 0; p < PMIXFAB_PATTERNS; p++)
        json_object_set_new(object, patterns[p], json_real(shares[p]));
    return object;
}

static json_t *told_worst_json(const struct told *told)
{
    const struct pmixfab_spread *spread = &told->spread;

    if (spread->worst_a == UINT32_MAX)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:i}", "a", ctl_json_text(told_host(told, spread->worst_a)), "b",
                     ctl_json_text(told_host(told, spread->worst_b)), "cost",
                     spread->worst == PMIXFAB_NO_PATH ? json_null() : json_integer(spread->worst), "switches",
                     (int)spread->worst_switches);
}

static enum ctl_exit told_json(const struct told *told)
{
    const struct ctl_placed *placed = told->placed;
    const struct pmixfab_spread *spread = &told->spread;
    json_t *hosts = json_array();
    json_t *object = json_pack("{s:o, s:I, s:o, s:o}", "plane", ctl_json_text(told->plane.name), "generation",
                               (json_int_t)told->plane.generation, "hostlist", ctl_json_text(told->folded),
                               "hosts", hosts);

    for (uint32_t i = 0; i < placed->n; i++)
        json_array_append_new(hosts, ctl_json_text(told->names[i]));
    if (object != NULL && placed->objective != NULL) {
        json_object_set_new(object, "objective", json_string(placed->objective));
        json_object_set_new(object, "value", json_integer((json_int_t)placed->placement.value));
        json_object_set_new(object, "bound", json_integer((json_int_t)placed->placement.bound));
        json_object_set_new(object, "usable", json_integer(placed->placement.n_usable));
        json_object_set_new(object, "down", json_integer(placed->placement.n_down));
    }
    if (object != NULL) {
        json_object_set_new(object, "cost", json_integer((json_int_t)spread->cost));
        json_object_set_new(object, "ring_cost", json_integer((json_int_t)spread->ring_cost));
        json_object_set_new(object, "switches", json_integer(spread->n_switches));
        json_object_set_new(object, "units",
                            spread->n_units > 0 ? json_integer(spread->n_units) : json_null());
        json_object_set_new(object, "worst", told_worst_json(told));
        json_object_set_new(object, "past_leaf", told_shares_json(spread->past_leaf));
        json_object_set_new(object, "past_unit",
                            spread->n_units > 0 ? told_shares_json(spread->past_unit) : json_null());
    }
    return ctl_json_print(stdout, object);
}

static enum ctl_exit told_csv(const struct told *told)
{
    static const struct ctl_column columns[] = {{"rank", NULL, true}, {"host", NULL, false}};
    struct ctl_table *table =
        ctl_table_open(stdout, CTL_CSV, CTL_JSON_ARRAY, NULL, columns, CTL_COUNT(columns));

    for (uint32_t i = 0; table != NULL && i < told->placed->n; i++) {
        ctl_put_number(table, i);
        ctl_put_text(table, told->names[i]);
        if (!ctl_table_row(table))
            break;
    }
    return ctl_table_close(table);
}

enum ctl_exit ctl_placed_show(const struct ctl *ctl, const struct ctl_placed *placed)
{
    struct told told = {.placed = placed};
    enum ctl_exit status = CTL_DONE;

    told.names = malloc(placed->n * sizeof *told.names);
    for (uint32_t i = 0; told.names != NULL && i < placed->n; i++)
        told.names[i] = told_host(&told, placed->hosts[i]);
    told.folded = told.names != NULL ? fab_hostlist_fold(told.names, placed->n) : NULL;
    if (told.folded != NULL)
        ctl_clean(told.folded);
    if (told.folded == NULL || pmixfab_plane(placed->fab, &told.plane) != 0 ||
        pmixfab_spread(placed->fab, placed->hosts, placed->n, &told.spread) != 0)
        status = ctl_nomem();
    else if (ctl->format == CTL_JSON)
        status = told_json(&told);
    else if (ctl->format == CTL_CSV)
        status = told_csv(&told);
    else if (ctl->quiet)
        puts(told.folded);
    else
        told_text(&told);
    free(told.names);
    free(told.folded);
    return status;
}
