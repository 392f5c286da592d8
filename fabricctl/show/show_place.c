/* show_place.c - hosts for a job, the order of its ranks, and the costs of a placement. */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/show/show.h"
#include "topo/base/hostlist.h"

/* ---- the hosts of a job, and their costs ---- */

/* The hosts of a job, in the order of its ranks. */
struct placed {
    const struct pmixfab *fab;
    uint32_t *hosts;
    uint32_t n;
    const char *objective; /* NULL: the hosts were given, or chosen for a pattern */
    const char *purpose;   /* the pattern as it was given; NULL: none */
    bool chosen;
    enum pmixfab_sharing sharing;
    struct pmixfab_placement placement; /* of the choice for the objective, else for the lowest sum */
    struct pmixfab_traffic traffic;     /* with a pattern */
    double share_by_sum;                /* chosen for a pattern: the share of the choice for the lowest sum */
};

/* An answer in the form that is shown. */
struct told {
    const struct placed *placed;
    struct pmixfab_plane plane;
    struct pmixfab_spread spread;
    const char **names; /* names of the hosts */
    char *folded;       /* the names in the short form */
};

static const char *const patterns[PMIXFAB_PATTERNS] = {
    [PMIXFAB_ALL_TO_ALL] = "all_to_all",
    [PMIXFAB_RING] = "ring",
    [PMIXFAB_DOUBLING] = "recursive_doubling",
};

/* Words of --for, and the same in texts. */
static const struct {
    const char *word, *text;
    enum pmixfab_pattern pattern;
} purposes[] = {{"alltoall", "all to all", PMIXFAB_ALL_TO_ALL},
                {"neighbours", "neighbours in a box", PMIXFAB_NEIGHBOURS},
                {"allreduce", "recursive doubling", PMIXFAB_DOUBLING},
                {"ring", "a ring", PMIXFAB_RING},
                {"any", NULL, PMIXFAB_ANY_PATTERN}};

static double told_pairs(const struct told *told)
{
    const double n = told->placed->n;
    return n > 1 ? n * (n - 1) / 2 : 1;
}

/* Return the maximum gain of another choice, as a part of the value of this one. */
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

static const char *told_switch(const struct told *told, const struct pmixfab_end *end)
{
    struct pmixfab_switch sw;
    return pmixfab_switch(told->placed->fab, end->index, &sw) == 0 ? sw.name : "";
}

/* Describe the expected time of the pattern. */
static void told_traffic(const struct told *told)
{
    const struct placed *placed = told->placed;
    const struct pmixfab_traffic *traffic = &placed->traffic;
    const bool by_ports = traffic->link == UINT32_MAX;
    struct pmixfab_link link;
    size_t p = 0;
    while (purposes[p].pattern != (enum pmixfab_pattern)traffic->pattern)
        p++;
    printf("%s%s at %.1f %% of the best possible rate, %s", purposes[p].text,
           strcmp(placed->purpose, "any") == 0 ? ", the slowest pattern," : "", 100 * traffic->share,
           placed->sharing == PMIXFAB_SHARED ? "with all other hosts busy" : "alone on the links");
    printf(": %.4g ms for messages of 1 MiB\n", traffic->seconds * 1e3);
    if (by_ports || pmixfab_link(placed->fab, traffic->link, &link) != 0)
        puts("the ports of the hosts limit it");
    else {
        const struct pmixfab_end *from = traffic->b_to_a != 0 ? &link.b : &link.a,
                                 *to = traffic->b_to_a != 0 ? &link.a : &link.b;
        printf("limit: the cable %s[%u] - %s[%u]", told_switch(told, from), from->port, told_switch(told, to),
               to->port);
        if (traffic->n_links > 1)
            printf(" and %u more like it", traffic->n_links - 1);
        putchar('\n');
    }
    if (placed->chosen && traffic->share < 1 && placed->n < placed->placement.n_usable)
        printf("hosts with the lowest sum of costs: %.1f %%; others may be faster than these\n",
               100 * placed->share_by_sum);
    if (strncmp(told->plane.kind, "torus", 5) == 0 || strncmp(told->plane.kind, "mesh", 4) == 0)
        printf("the kind of the plane is %s: its routes are guessed, and the time is rough\n",
               told->plane.kind);
}

static void told_text(const struct told *told)
{
    const struct placed *placed = told->placed;
    const struct pmixfab_spread *spread = &told->spread;
    printf("%s\n%u host%s of plane %s", told->folded, placed->n, placed->n == 1 ? "" : "s", told->plane.name);
    if (placed->chosen)
        printf(", of %u available", placed->placement.n_usable);
    printf("\ncost %llu, %.1f a pair", (unsigned long long)spread->cost,
           (double)spread->cost / told_pairs(told));
    if (placed->chosen && placed->objective == NULL)
        printf("; by sum a choice has %llu", (unsigned long long)placed->placement.value);
    else if (placed->objective == NULL)
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
    if (placed->purpose != NULL)
        told_traffic(told);
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

static json_t *told_traffic_json(const struct told *told)
{
    const struct pmixfab_traffic *traffic = &told->placed->traffic;
    json_t *limit = json_null();
    struct pmixfab_link link;
    size_t p = 0;
    if (told->placed->purpose == NULL)
        return NULL;
    while (purposes[p].pattern != (enum pmixfab_pattern)traffic->pattern)
        p++;
    if (traffic->link != UINT32_MAX && pmixfab_link(told->placed->fab, traffic->link, &link) == 0) {
        const struct pmixfab_end *from = traffic->b_to_a != 0 ? &link.b : &link.a,
                                 *to = traffic->b_to_a != 0 ? &link.a : &link.b;
        limit = json_pack("{s:o, s:i, s:o, s:i, s:i}", "from", ctl_json_text(told_switch(told, from)),
                          "from_port", (int)from->port, "to", ctl_json_text(told_switch(told, to)), "to_port",
                          (int)to->port, "cables", (int)traffic->n_links);
    }
    return json_pack("{s:s, s:s, s:b, s:f, s:f, s:o}", "for", told->placed->purpose, "pattern",
                     purposes[p].word, "shared", told->placed->sharing == PMIXFAB_SHARED, "share",
                     traffic->share, "seconds", traffic->seconds, "limit", limit);
}

static enum ctl_exit told_json(const struct told *told)
{
    const struct placed *placed = told->placed;
    const struct pmixfab_placement *placement = &placed->placement;
    const struct pmixfab_spread *spread = &told->spread;
    const bool chosen = placed->chosen, valued = placed->objective != NULL, units = spread->n_units > 0;
    json_t *hosts = json_array();
    for (uint32_t i = 0; i < placed->n; i++)
        json_array_append_new(hosts, ctl_json_text(told->names[i]));
    return ctl_json_print(
        stdout,
        json_pack(
            "{s:o, s:I, s:o, s:o, s:s*, s:o*, s:o*, s:o*, s:o*, s:o*, s:I, s:I, s:I, s:o, s:o, s:o, s:o}",
            "plane", ctl_json_text(told->plane.name), "generation", (json_int_t)told->plane.generation,
            "hostlist", ctl_json_text(told->folded), "hosts", hosts, "objective", placed->objective, "value",
            valued ? json_integer((json_int_t)placement->value) : NULL, "bound",
            valued ? json_integer((json_int_t)placement->bound) : NULL, "traffic", told_traffic_json(told),
            "usable", chosen ? json_integer(placement->n_usable) : NULL, "down",
            chosen ? json_integer(placement->n_down) : NULL, "cost", (json_int_t)spread->cost, "ring_cost",
            (json_int_t)spread->ring_cost, "switches", (json_int_t)spread->n_switches, "units",
            units ? json_integer(spread->n_units) : json_null(), "worst", told_worst_json(told), "past_leaf",
            told_shares_json(spread->past_leaf), "past_unit",
            units ? told_shares_json(spread->past_unit) : json_null()));
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

static enum ctl_exit placed_show(const struct ctl *ctl, const struct placed *placed)
{
    struct told told = {.placed = placed};
    enum ctl_exit status = CTL_DONE;
    told.names = malloc((placed->n + (size_t)1) * sizeof *told.names);
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

/* ---- the choice of hosts for a job, and the order of its ranks ---- */

static const char *const objectives[] = {
    [PMIXFAB_PLACE_SUM] = "sum",
    [PMIXFAB_PLACE_MAX] = "max",
    [PMIXFAB_PLACE_SWITCHES] = "switches",
};

/* The request: a plane, and hosts of it. */
struct place_question {
    const struct pmixfab *fab;
    struct pmixfab_plane plane;
    uint32_t *hosts;
    uint32_t n;
};

static enum ctl_exit place_unknown_host(const struct place_question *q, const char *list, const char *name,
                                        uint32_t others)
{
    char more[40] = "";
    if (others > 0)
        snprintf(more, sizeof more, ", nor %u more of the list", others);
    return ctl_error("no host %s: %s: plane %s does not have it%s: `fabricctl devices` lists its hosts", name,
                     list, q->plane.name, more);
}

/* Read a list of hosts as numbers. `option` is the place of the list, for messages. */
static enum ctl_exit place_read_list(struct place_question *q, const char *option, const char *text)
{
    struct fab_hostlist list;
    struct fab_err err;
    const char *unknown = NULL;
    uint32_t n_unknown = 0;
    enum ctl_exit status = CTL_DONE;
    if (fab_hostlist_parse(text, &list, &err) != 0)
        return ctl_usage("%s: %s", option, err.text);
    q->hosts = calloc(list.n + (size_t)1, sizeof *q->hosts);
    if (q->hosts == NULL)
        status = ctl_nomem();
    for (uint32_t i = 0; status == CTL_DONE && i < list.n; i++)
        if (pmixfab_find_host(q->fab, list.names[i], &q->hosts[q->n]) == 0)
            q->n++;
        else if (n_unknown++ == 0)
            unknown = list.names[i];
    if (unknown != NULL)
        status = place_unknown_host(q, option, unknown, n_unknown - 1);
    else if (status == CTL_DONE && list.n == 0)
        status = ctl_usage("no hosts: %s: the list is empty", option);
    fab_hostlist_free(&list);
    return status;
}

/* Return whether the host has a name other than a GUID. */
static bool place_named(const struct pmixfab *fab, uint32_t host)
{
    const char *name;
    uint32_t first, n;
    return pmixfab_host(fab, host, &name, &first, &n) == 0 && !ctl_guid_name(name);
}

/*
 * Replace q->hosts by all other hosts of the plane. Hosts with only a GUID are left out, since no scheduler
 * can start a job there. But if no host has a name, GUIDs are used.
 */
static enum ctl_exit place_others(struct place_question *q)
{
    bool *excluded = calloc(q->plane.n_hosts + (size_t)1, sizeof *excluded);
    uint32_t *others = malloc((q->plane.n_hosts + (size_t)1) * sizeof *others);
    uint32_t n = 0, n_nameless = 0;
    if (excluded == NULL || others == NULL) {
        free(excluded);
        free(others);
        return ctl_nomem();
    }
    for (uint32_t i = 0; i < q->n; i++)
        excluded[q->hosts[i]] = true;
    for (uint32_t h = 0; h < q->plane.n_hosts; h++) {
        if (excluded[h])
            continue;
        if (q->plane.n_unnamed == q->plane.n_hosts || place_named(q->fab, h))
            others[n++] = h;
        else
            n_nameless++;
    }
    if (n_nameless > 0)
        ctl_error("left out: %u hosts of plane %s that have only a GUID: name them with --from", n_nameless,
                  q->plane.name);
    free(excluded);
    free(q->hosts);
    q->hosts = others;
    q->n = n;
    return CTL_DONE;
}

static enum ctl_exit place_failed(const struct ctl *ctl, const struct place_question *q, int rc,
                                  const struct pmixfab_placement *placement)
{
    if (rc == PMIXFAB_ERR_NOMEM)
        return ctl_nomem();
    if (rc != PMIXFAB_ERR_NOTFOUND)
        return ctl_error("cannot place %u hosts: plane %s: %s", ctl->limit, q->plane.name,
                         pmixfab_strerror(rc));
    if (placement->n_usable >= ctl->limit)
        return ctl_error("cannot place %u hosts: plane %s: no %u of the %u hosts reach each other: see "
                         "`fabricctl check`",
                         ctl->limit, q->plane.name, ctl->limit, placement->n_usable);
    return ctl_error("cannot place %u hosts: plane %s: %u are available, and %u are down: ask for fewer, or "
                     "give more to choose from",
                     ctl->limit, q->plane.name, placement->n_usable, placement->n_down);
}

/* Read --for, --alone and --shared. *pattern stays without --for. */
static enum ctl_exit place_read_purpose(const struct ctl *ctl, struct placed *placed, uint32_t *pattern)
{
    size_t p = 0;
    if (ctl->purpose == NULL)
        return ctl->alone || ctl->shared ? ctl_usage("no pattern: --alone and --shared: give --for")
                                         : CTL_DONE;
    if (ctl->alone && ctl->shared)
        return ctl_usage("one or the other: --alone and --shared");
    while (p < CTL_COUNT(purposes) && strcmp(ctl->purpose, purposes[p].word) != 0)
        p++;
    if (p == CTL_COUNT(purposes))
        return ctl_usage("no such pattern: --for %s: there are alltoall, neighbours, allreduce, ring and any",
                         ctl->purpose);
    *pattern = purposes[p].pattern;
    placed->purpose = purposes[p].word;
    placed->sharing = ctl->shared ? PMIXFAB_SHARED : PMIXFAB_ALONE;
    return CTL_DONE;
}

/* Compute the expected time on the hosts. */
static int place_traffic(struct placed *placed, uint32_t pattern)
{
    const struct pmixfab_job job = {.hosts = placed->hosts, .n = placed->n, .pattern = pattern};
    return pmixfab_traffic(placed->fab, &job, 1, placed->sharing, &placed->traffic);
}

/* Choose by the objective, and after that for the pattern. */
static int place_decide(struct placed *placed, const struct place_question *q,
                        enum pmixfab_objective objective, uint32_t pattern)
{
    int rc = pmixfab_place(q->fab, q->hosts, q->n, placed->n, objective, placed->hosts, &placed->placement);
    if (rc != 0 || placed->purpose == NULL)
        return rc;
    placed->objective = NULL;
    rc = place_traffic(placed, pattern);
    placed->share_by_sum = placed->traffic.share;
    return rc != 0 ? rc
                   : pmixfab_place_for(q->fab, q->hosts, q->n, placed->n, (enum pmixfab_pattern)pattern,
                                       placed->sharing, placed->hosts, &placed->traffic);
}

static enum ctl_exit place_answer(const struct ctl *ctl, struct place_question *q)
{
    struct placed placed = {.fab = q->fab, .n = ctl->limit, .chosen = true};
    uint32_t pattern = 0;
    unsigned objective = 0;
    while (ctl->objective != NULL && objective < CTL_COUNT(objectives) &&
           strcmp(ctl->objective, objectives[objective]) != 0)
        objective++;
    if (objective == CTL_COUNT(objectives))
        return ctl_usage("no such objective: --objective %s: there are sum, max and switches",
                         ctl->objective);
    if (ctl->objective != NULL && ctl->purpose != NULL)
        return ctl_usage("one or the other: --objective and --for");
    enum ctl_exit status = place_read_purpose(ctl, &placed, &pattern);
    if (status != CTL_DONE)
        return status;
    placed.objective = objectives[objective];
    if (q->n < ctl->limit) /* before the allocation: the number may be a typing error */
        return ctl_error(
            "cannot place %u hosts: plane %s: there are %u to choose from: ask for fewer, or give more",
            ctl->limit, q->plane.name, q->n);
    placed.hosts = malloc(ctl->limit * sizeof *placed.hosts);
    if (placed.hosts == NULL)
        return ctl_nomem();
    const int rc = place_decide(&placed, q, (enum pmixfab_objective)objective, pattern);
    status = rc == 0 ? placed_show(ctl, &placed) : place_failed(ctl, q, rc, &placed.placement);
    free(placed.hosts);
    return status;
}

enum ctl_exit ctl_place(const struct ctl *ctl)
{
    struct place_question q = {.hosts = NULL};
    struct ctl_view view;
    enum ctl_exit status;
    if (ctl->limit == 0)
        return ctl_usage("no number of hosts: place: give -n NODES");
    if (ctl->from != NULL && ctl->exclude != NULL)
        return ctl_usage("one or the other: --from and --exclude");
    status = ctl_view_one(ctl, &view);
    if (status != CTL_DONE)
        return status;
    q.fab = view.planes[0];
    if (pmixfab_plane(q.fab, &q.plane) != 0)
        status = ctl_error("no answer: place: the snapshot contradicts itself");
    else if (ctl->from != NULL)
        status = place_read_list(&q, "--from", ctl->from);
    else if (ctl->exclude != NULL)
        status = place_read_list(&q, "--exclude", ctl->exclude);
    if (status == CTL_DONE && ctl->from == NULL)
        status = place_others(&q);
    if (status == CTL_DONE)
        status = place_answer(ctl, &q);
    free(q.hosts);
    ctl_view_close(&view);
    return status;
}

/* Return the name of the first host that is in the list twice. */
static const char *place_twice(const struct place_question *q)
{
    bool *seen = calloc(q->plane.n_hosts + (size_t)1, sizeof *seen);
    const char *name = NULL;
    uint32_t first, n;
    for (uint32_t i = 0; i < q->n && seen != NULL && name == NULL; i++) {
        if (seen[q->hosts[i]])
            pmixfab_host(q->fab, q->hosts[i], &name, &first, &n);
        seen[q->hosts[i]] = true;
    }
    free(seen);
    return name;
}

enum ctl_exit ctl_order(const struct ctl *ctl)
{
    struct place_question q = {.hosts = NULL};
    struct ctl_view view;
    enum ctl_exit status = ctl_view_one(ctl, &view);
    if (status != CTL_DONE)
        return status;
    q.fab = view.planes[0];
    status = pmixfab_plane(q.fab, &q.plane) == 0
                 ? place_read_list(&q, "the list", ctl->args[0])
                 : ctl_error("no answer: order: the snapshot contradicts itself");
    if (status == CTL_DONE) {
        const char *twice = place_twice(&q);
        struct placed placed = {.fab = q.fab, .hosts = q.hosts, .n = q.n};
        uint32_t pattern = 0;
        status = place_read_purpose(ctl, &placed, &pattern);
        if (status == CTL_DONE && twice != NULL)
            status = ctl_error("twice in the list: %s: give each host once", twice);
        else if (status == CTL_DONE && pmixfab_order(q.fab, q.hosts, q.n) != 0)
            status = ctl_nomem();
        else if (status == CTL_DONE && placed.purpose != NULL && place_traffic(&placed, pattern) != 0)
            status = ctl_error("no time: order: plane %s: not all of these hosts reach each other: see "
                               "`fabricctl check`",
                               q.plane.name);
        if (status == CTL_DONE)
            status = placed_show(ctl, &placed);
    }
    free(q.hosts);
    ctl_view_close(&view);
    return status;
}
