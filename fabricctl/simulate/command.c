/* command.c - the command `simulate`: its jobs, the files of a run, the load of the cables, and the answer.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/simulate/simulate.h"
#include "topo/base/order.h"

#define RANKS_OF_HOST 256 /* at most */
#define SHOWN_LINKS   3
#define JOBS_MAX      64

struct sim_job {
    char *hostlist;
    uint32_t *hosts; /* numbers in the routes */
    uint32_t n;
    double seconds, alone; /* with all jobs, and as the only one */
};

/* Bytes through a cable in one direction. */
struct sim_load {
    uint32_t cable;
    bool from_a;
    uint64_t bytes, mbps;
};

struct simulation {
    const struct ctl *ctl;
    struct ctl_routes routes;
    struct sim_job jobs[JOBS_MAX];
    uint32_t n_jobs;
    uint32_t ranks; /* of each job */
    struct sim_messages messages;
    struct sim_load *loads; /* of cable c: loads[2 * c] from end a to end b, loads[2 * c + 1] back */
    struct sim_programs programs;
    char folder[SIM_FOLDER];
    double seconds;
};

/* ---- the jobs ---- */

/*
 * Read the lists of --hosts, with ';' between jobs. all: the hosts of all jobs, one job after the other; each
 * job gets its part.
 */
static enum ctl_exit jobs_read(struct simulation *sim, struct fab_hostlist *all)
{
    char *const joined = strdup(sim->ctl->hosts);
    struct fab_err err = {{0}};
    enum ctl_exit status = CTL_DONE;
    if (joined == NULL)
        return ctl_nomem();
    for (char *at = joined, *end; status == CTL_DONE && *at != '\0'; at = end) {
        struct sim_job *job = &sim->jobs[sim->n_jobs];
        end = at + strcspn(at, ";");
        if (sim->n_jobs == JOBS_MAX)
            status = ctl_usage("too many jobs: --hosts: there are at most %d lists", JOBS_MAX);
        else if ((job->hostlist = strndup(at, (size_t)(end - at))) == NULL)
            status = ctl_nomem();
        else if (fab_hostlist_parse(job->hostlist, all, &err) != 0)
            status = ctl_usage("%s: --hosts %.200s", err.text, job->hostlist);
        else if (all->n == 0)
            status = ctl_usage("an empty list: --hosts %.200s", sim->ctl->hosts);
        if (status != CTL_DONE)
            continue;
        job->n = all->n;
        fab_hostlist_free(all);
        sim->n_jobs++;
        if (*end == ';')
            *end++ = ',';
    }
    if (status == CTL_DONE && fab_hostlist_parse(joined, all, &err) != 0)
        status = ctl_usage("%s: --hosts %.200s", err.text, sim->ctl->hosts);
    free(joined);
    return status;
}

static enum ctl_exit jobs_ranks(struct simulation *sim)
{
    sim->ranks = sim->ctl->limit > 0 ? sim->ctl->limit : sim->jobs[0].n;
    for (uint32_t j = 0; j < sim->n_jobs; j++) {
        const uint32_t n = sim->jobs[j].n;
        if (sim->ctl->limit == 0 && n != sim->ranks)
            return ctl_usage("no number of ranks: the lists have %u and %u hosts: give -n RANKS", sim->ranks,
                             n);
        if (sim->ranks > (uint64_t)n * RANKS_OF_HOST)
            return ctl_usage("too many ranks: -n %u: %u host%s, with at most %d ranks each", sim->ranks, n,
                             n == 1 ? "" : "s", RANKS_OF_HOST);
    }
    return CTL_DONE;
}

/* Find the hosts of each job among those of the routes. all: the hosts of all jobs. */
static enum ctl_exit jobs_hosts(struct simulation *sim, const struct fab_hostlist *all)
{
    uint32_t *last = calloc(sim->routes.n + (size_t)1, sizeof *last); /* job of each host, from 1 */
    uint32_t i = 0, host;
    enum ctl_exit status = CTL_DONE;
    if (last == NULL || all->names == NULL) {
        free(last);
        return ctl_nomem();
    }
    for (uint32_t j = 0; status == CTL_DONE && j < sim->n_jobs; j++) {
        struct sim_job *job = &sim->jobs[j];
        job->hosts = calloc(job->n + (size_t)1, sizeof *job->hosts);
        if (job->hosts == NULL) {
            status = ctl_nomem();
            break;
        }
        for (uint32_t k = 0; status == CTL_DONE && k < job->n; k++, i++) {
            const char *name = all->names[i];
            host =
                pmixfab_find_host(sim->routes.fab, name, &host) == 0 ? sim->routes.of_host[host] : UINT32_MAX;
            if (host == UINT32_MAX)
                status = ctl_error("host %s: it cannot be in a platform", name);
            else if (last[host] == j + 1)
                status = ctl_usage("host %s: it is in the list of a job twice", name);
            else
                last[job->hosts[k] = host] = j + 1;
        }
    }
    free(last);
    return status;
}

/* Return the host of a rank: consecutive ranks fill a host. */
static uint32_t rank_host(const struct simulation *sim, const struct sim_job *job, uint32_t rank)
{
    return job->hosts[sim->ranks <= job->n ? rank : (uint64_t)rank * job->n / sim->ranks];
}

/* ---- the load of the cables: exact sums by the routes, not by SimGrid ---- */

static void load_add(struct simulation *sim, uint32_t cable, bool from_a, uint64_t bytes)
{
    sim->loads[2 * (size_t)cable + !from_a].bytes += bytes;
}

static void load_message(struct simulation *sim, uint32_t from, uint32_t to, uint64_t bytes)
{
    const struct ctl_routes *r = &sim->routes;
    const struct ctl_routed_host *a = &r->hosts[from], *b = &r->hosts[to];
    uint32_t sw = a->sw;
    if (from == to)
        return;
    load_add(sim, a->cable, r->cables[a->cable].a.is_switch == 0, bytes);
    while (sw != b->sw) {
        const uint32_t cable = r->next[(size_t)sw * r->n + to];
        load_add(sim, cable, r->cables[cable].a.index == sw, bytes);
        sw = ctl_route_switch(r, sw, cable);
    }
    load_add(sim, b->cable, r->cables[b->cable].a.is_switch != 0, bytes);
}

/* The longest time at full rate comes first. */
static int compare_loads(const void *a, const void *b)
{
    const struct sim_load *x = a, *y = b;
    const __uint128_t left = (__uint128_t)x->bytes * y->mbps, right = (__uint128_t)y->bytes * x->mbps;
    return FAB_ORDER(right, left) ?: FAB_ORDER(x->cable, y->cable) ?: FAB_ORDER(y->from_a, x->from_a);
}

static enum ctl_exit loads_make(struct simulation *sim)
{
    const struct ctl_routes *r = &sim->routes;
    sim->loads = calloc(2 * (size_t)r->plane.n_links + 2, sizeof *sim->loads);
    if (sim->loads == NULL)
        return ctl_nomem();
    for (uint32_t i = 0; i < 2 * r->plane.n_links; i++) {
        const uint64_t mbps = r->cables[i / 2].mbps;
        sim->loads[i] = (struct sim_load){i / 2, i % 2 == 0, 0, mbps > 0 ? mbps : r->plane.fastest_mbps};
    }
    for (uint32_t j = 0; j < sim->n_jobs; j++)
        for (uint32_t i = 0; i < sim->messages.n; i++) {
            const struct sim_message *m = &sim->messages.all[i];
            load_message(sim, rank_host(sim, &sim->jobs[j], m->from), rank_host(sim, &sim->jobs[j], m->to),
                         m->bytes);
        }
    qsort(sim->loads, 2 * (size_t)r->plane.n_links, sizeof *sim->loads, compare_loads);
    return CTL_DONE;
}

/* ---- the files of a run ---- */

static enum ctl_exit run_platform(struct simulation *sim, struct ctl_export *x)
{
    enum ctl_exit status;
    x->out = sim_folder_file(sim->folder, "platform.xml");
    if (x->out == NULL)
        return CTL_FAILED;
    status = ctl_simgrid_write(x, &sim->routes);
    return sim_folder_close(x->out, sim->folder, "platform.xml") ? status : CTL_FAILED;
}

/* Write "waitall" for ranks of the job that took part in the step. part: is cleared. */
static void trace_wait(FILE *out, uint32_t first, uint32_t ranks, bool *part)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        if (part[rank])
            fprintf(out, "%u waitall\n", first + rank);
        part[rank] = false;
    }
}

/*
 * Write the actions of jobs `first` to `end` - 1, step by step. SimGrid keeps actions of a rank in memory
 * until the rank comes to them, so the jobs take turns.
 */
static bool trace_write(const struct simulation *sim, FILE *out, uint32_t first, uint32_t end)
{
    bool *part = calloc(sim->ranks, sizeof *part);
    for (uint32_t rank = 0; part != NULL && rank < (end - first) * sim->ranks; rank++)
        fprintf(out, "%u init\n", rank);
    for (uint32_t i = 0, next; part != NULL && i < sim->messages.n; i = next) {
        for (next = i; next < sim->messages.n && sim->messages.all[next].step == sim->messages.all[i].step;)
            next++;
        for (uint32_t j = first; j < end; j++) {
            const uint32_t base = (j - first) * sim->ranks;
            for (uint32_t k = i; k < next; k++) {
                const struct sim_message *m = &sim->messages.all[k];
                fprintf(out, "%u isend %u 0 %u\n%u irecv %u 0 %u\n", base + m->from, base + m->to, m->bytes,
                        base + m->to, base + m->from, m->bytes);
                part[m->from] = part[m->to] = true;
            }
            trace_wait(out, base, sim->ranks, part);
        }
    }
    free(part);
    return part != NULL;
}

/* Run jobs `first` to `end` - 1 together. ends: room for the times of their ranks. */
static enum ctl_exit run_jobs(struct simulation *sim, uint32_t first, uint32_t end, double *ends)
{
    FILE *hosts = sim_folder_file(sim->folder, "hosts"), *traces, *trace;
    bool good = hosts != NULL;
    for (uint32_t j = first; good && j < end; j++)
        for (uint32_t rank = 0; rank < sim->ranks; rank++)
            fprintf(hosts, "%s\n", sim->routes.hosts[rank_host(sim, &sim->jobs[j], rank)].name);
    good = hosts != NULL && sim_folder_close(hosts, sim->folder, "hosts");
    traces = good ? sim_folder_file(sim->folder, "traces") : NULL;
    if (traces != NULL)
        fputs("trace\n", traces);
    good = traces != NULL && sim_folder_close(traces, sim->folder, "traces");
    trace = good ? sim_folder_file(sim->folder, "trace") : NULL;
    good = trace != NULL && trace_write(sim, trace, first, end);
    if (trace != NULL && !good)
        ctl_nomem();
    good = (trace == NULL || sim_folder_close(trace, sim->folder, "trace")) && good;
    return good ? sim_replay(&sim->programs, sim->folder, (end - first) * sim->ranks, ends) : CTL_FAILED;
}

static double latest(const double *ends, uint32_t n)
{
    double last = 0;
    for (uint32_t i = 0; i < n; i++)
        last = ends[i] > last ? ends[i] : last;
    return last;
}

static enum ctl_exit simulate_jobs(struct simulation *sim, struct ctl_export *x)
{
    double *ends = calloc((size_t)sim->n_jobs * sim->ranks, sizeof *ends);
    enum ctl_exit status;
    if (ends == NULL)
        return ctl_nomem();
    status = sim_programs_find(&sim->programs);
    ctl_catch_interrupts();
    if (status == CTL_DONE)
        status = sim_folder_make(sim->folder);
    if (status == CTL_DONE)
        status = run_platform(sim, x);
    if (status == CTL_DONE)
        status = run_jobs(sim, 0, sim->n_jobs, ends);
    for (uint32_t j = 0; status == CTL_DONE && j < sim->n_jobs; j++)
        sim->jobs[j].alone = sim->jobs[j].seconds = latest(ends + (size_t)j * sim->ranks, sim->ranks);
    if (status == CTL_DONE)
        sim->seconds = latest(ends, sim->n_jobs * sim->ranks);
    for (uint32_t j = 0; status == CTL_DONE && sim->n_jobs > 1 && j < sim->n_jobs; j++) {
        status = run_jobs(sim, j, j + 1, ends);
        sim->jobs[j].alone = latest(ends, sim->ranks);
    }
    sim_folder_remove(sim->folder);
    free(ends);
    return status;
}

/* ---- the answer ---- */

/* Return the end of a cable: the name of the switch, or HOST:DEVICE. */
static json_t *load_end(const struct ctl_routes *r, const struct pmixfab_end *end)
{
    char text[300] = "?";
    struct pmixfab_switch sw;
    struct pmixfab_device device;
    if (end->is_switch != 0 && pmixfab_switch(r->fab, end->index, &sw) == 0)
        snprintf(text, sizeof text, "%s", sw.name);
    else if (end->is_switch == 0 && pmixfab_device(r->fab, end->index, &device) == 0)
        snprintf(text, sizeof text, "%s:%s", device.host, device.name);
    return ctl_json_text(text);
}

/* Return the part of the simulated time that the bytes need at the full rate of the cable. */
static double load_share(const struct simulation *sim, const struct sim_load *load)
{
    return sim->seconds > 0 ? (double)load->bytes * 8 / ((double)load->mbps * 1e6) / sim->seconds : 0;
}

static json_t *answer_links(const struct simulation *sim)
{
    json_t *links = json_array();
    for (uint32_t i = 0; i < SHOWN_LINKS && i < 2 * sim->routes.plane.n_links; i++) {
        const struct sim_load *load = &sim->loads[i];
        const struct pmixfab_link *cable = &sim->routes.cables[load->cable];
        const struct pmixfab_end *from = load->from_a ? &cable->a : &cable->b;
        const struct pmixfab_end *to = load->from_a ? &cable->b : &cable->a;
        if (load->bytes > 0)
            json_array_append_new(links, json_pack("{s:o, s:i, s:o, s:i, s:o, s:I, s:f}", "from",
                                                   load_end(&sim->routes, from), "from_port", (int)from->port,
                                                   "to", load_end(&sim->routes, to), "to_port", (int)to->port,
                                                   "rate_gbps", ctl_json_rate(load->mbps), "bytes",
                                                   (json_int_t)load->bytes, "share", load_share(sim, load)));
    }
    return links;
}

static enum ctl_exit answer_json(const struct simulation *sim)
{
    json_t *jobs = json_array();
    for (uint32_t j = 0; j < sim->n_jobs; j++)
        json_array_append_new(jobs, json_pack("{s:o, s:f, s:f}", "hostlist",
                                              ctl_json_text(sim->jobs[j].hostlist), "seconds",
                                              sim->jobs[j].seconds, "alone_seconds", sim->jobs[j].alone));
    return ctl_json_print(stdout, json_pack("{s:o, s:I, s:o, s:I, s:I, s:f, s:o, s:o}", "plane",
                                            ctl_json_text(sim->routes.plane.name), "generation",
                                            (json_int_t)sim->routes.plane.generation, "pattern",
                                            ctl_json_text(sim->ctl->pattern), "ranks", (json_int_t)sim->ranks,
                                            "messages", (json_int_t)sim->messages.n, "seconds", sim->seconds,
                                            "jobs", jobs, "links", answer_links(sim)));
}

static enum ctl_exit answer_text(const struct simulation *sim)
{
    json_t *links = answer_links(sim), *link;
    size_t i;
    for (uint32_t j = 0; j < sim->n_jobs; j++) {
        char *clean = ctl_clean_copy(sim->jobs[j].hostlist);
        printf("%s\n%u rank%s, %u message%s: %.9f s", clean != NULL ? clean : "?", sim->ranks,
               sim->ranks == 1 ? "" : "s", sim->messages.n, sim->messages.n == 1 ? "" : "s",
               sim->jobs[j].seconds);
        if (sim->n_jobs > 1)
            printf("; alone %.9f s", sim->jobs[j].alone);
        putchar('\n');
        free(clean);
    }
    if (sim->n_jobs > 1)
        printf("all jobs: %.9f s\n", sim->seconds);
    puts(json_array_size(links) > 0 ? "fullest cables (bytes by the routes; share of the time at full rate):"
                                    : "no message crosses a cable");
    json_array_foreach(links, i, link)
    {
        printf("%s port %d -> %s port %d: %" PRId64 " bytes, %.1f %%\n", ctl_text_of(link, "from"),
               (int)ctl_number_of(link, "from_port"), ctl_text_of(link, "to"),
               (int)ctl_number_of(link, "to_port"), (int64_t)ctl_number_of(link, "bytes"),
               100 * json_real_value(json_object_get(link, "share")));
    }
    json_decref(links);
    return CTL_DONE;
}

static enum ctl_exit simulate_view(struct simulation *sim, const struct ctl_view *view)
{
    struct ctl_export x = {.ctl = sim->ctl, .view = view};
    struct fab_hostlist all = {0};
    enum ctl_exit status = jobs_read(sim, &all) ?: jobs_ranks(sim);
    if (status == CTL_DONE)
        status = sim_pattern(sim->ctl->pattern, sim->ranks, sim->ctl->bytes, &sim->messages);
    if (status == CTL_DONE)
        status = ctl_routes_make(&x, &all, &sim->routes) ?: jobs_hosts(sim, &all) ?: loads_make(sim);
    fab_hostlist_free(&all);
    return status ?: simulate_jobs(sim, &x);
}

enum ctl_exit ctl_simulate(const struct ctl *ctl)
{
    struct simulation *sim;
    struct ctl_view view = {.n = 0};
    enum ctl_exit status;
    if (ctl->hosts == NULL || ctl->pattern == NULL)
        return ctl_usage("too few options: usage: fabricctl simulate --hosts LIST --pattern " SIM_PATTERNS
                         " or a file");
    if (ctl->format == CTL_CSV)
        return ctl_usage("no CSV: simulate prints text or JSON");
    sim = calloc(1, sizeof *sim);
    if (sim == NULL)
        return ctl_nomem();
    sim->ctl = ctl;
    status = ctl_view_one(ctl, &view);
    if (status == CTL_DONE)
        status = simulate_view(sim, &view);
    if (status == CTL_DONE)
        status = ctl->format == CTL_JSON ? answer_json(sim) : answer_text(sim);
    for (uint32_t j = 0; j < JOBS_MAX; j++) {
        free(sim->jobs[j].hosts);
        free(sim->jobs[j].hostlist);
    }
    sim_programs_free(&sim->programs);
    ctl_routes_free(&sim->routes);
    free(sim->messages.all);
    free(sim->loads);
    free(sim);
    ctl_view_close(&view);
    return status;
}
