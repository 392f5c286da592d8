/* job_hosts.c - the hosts of a job and their slots: of the command line, a host file, Slurm, PBS or LSF. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/run/run.h"
#include "topo/base/hostlist.h"
#include "topo/base/order.h"

int run_why(char why[static RUN_WHY], int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, RUN_WHY, fmt, args);
    va_end(args);
    return code;
}

/* ---- the list ---- */

/* Append a host. slots 0: not known. */
static bool add_host(struct run_hosts *hosts, const char *name, size_t len, uint32_t slots)
{
    if (hosts->n == hosts->room) {
        const uint32_t room = hosts->room * 2 + 64;
        char **names = realloc(hosts->names, room * sizeof *names);
        if (names == NULL)
            return false;
        hosts->names = names;
        uint32_t *numbers = realloc(hosts->slots, room * sizeof *numbers);
        if (numbers == NULL)
            return false;
        hosts->slots = numbers;
        hosts->room = room;
    }
    hosts->names[hosts->n] = strndup(name, len);
    hosts->slots[hosts->n] = slots;
    return hosts->names[hosts->n] != NULL && ++hosts->n > 0;
}

static int name_cmp(const void *a, const void *b, void *names)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const int order = strcmp(((char **)names)[i], ((char **)names)[k]);
    return order != 0 ? order : FAB_ORDER(i, k);
}

/* Merge hosts that were added many times into the first one, which gets all slots. */
static bool merge_hosts(struct run_hosts *hosts)
{
    uint32_t *sorted = malloc((hosts->n + (size_t)1) * sizeof *sorted), kept = 0;
    if (sorted == NULL)
        return false;
    for (uint32_t i = 0; i < hosts->n; i++)
        sorted[i] = i;
    qsort_r(sorted, hosts->n, sizeof *sorted, name_cmp, hosts->names);
    for (uint32_t i = 1, first = 0; i < hosts->n; i++) {
        if (strcmp(hosts->names[sorted[first]], hosts->names[sorted[i]]) != 0) {
            first = i;
            continue;
        }
        hosts->slots[sorted[first]] += hosts->slots[sorted[i]];
        hosts->slots[sorted[i]] = UINT32_MAX; /* merged */
    }
    for (uint32_t i = 0; i < hosts->n; i++)
        if (hosts->slots[i] == UINT32_MAX) {
            free(hosts->names[i]);
        } else {
            hosts->names[kept] = hosts->names[i];
            hosts->slots[kept++] = hosts->slots[i];
        }
    hosts->n = kept;
    free(sorted);
    return true;
}

/*
 * Read "host", "host:4" or "host slots=4", with one character between two of them. without: the slots of a
 * host without a number. Frees the text.
 */
static bool add_text(struct run_hosts *hosts, char *text, const char *between, uint32_t without)
{
    char *rest = text, *line;
    bool good = text != NULL;
    while (good && (line = strsep(&rest, between)) != NULL) {
        const char *name = line + strspn(line, " \t\r"), *slots = strstr(line, " slots");
        const size_t len = strcspn(name, " \t\r#"), upto = strcspn(name, " \t\r#:");
        unsigned long n = without;
        if (len == 0)
            continue;
        if (slots != NULL || upto < len)
            n = strtoul(slots != NULL ? slots + strcspn(slots, "0123456789") : name + upto + 1, NULL, 10);
        good = add_host(hosts, name, upto, n < 1000000 ? (uint32_t)n : 0);
    }
    free(text);
    return good;
}

static bool add_file(struct run_hosts *hosts, const char *path, uint32_t without, char why[static RUN_WHY])
{
    size_t size;
    return add_text(hosts, ctl_target_read(path, &size), "\n", without)
               ? true
               : run_why(why, false, "cannot read the host file: %.200s", path);
}

/* ---- Slurm ---- */

/* Return the i-th number of "4(x2),1", as Slurm writes numbers of hosts; 0: none. */
static uint32_t slurm_number(const char *text, uint32_t i)
{
    while (text != NULL && isdigit((unsigned char)*text)) {
        char *end;
        const unsigned long number = strtoul(text, &end, 10);
        const unsigned long times = strncmp(end, "(x", 2) == 0 ? strtoul(end + 2, &end, 10) : 1;
        if (i < times)
            return number < 1000000 ? (uint32_t)number : 0;
        i -= (uint32_t)times;
        text = strchr(end, ',');
        text = text != NULL ? text + 1 : NULL;
    }
    return 0;
}

static bool add_slurm_nodes(struct run_hosts *hosts, const char *nodes, const char *numbers,
                            char why[static RUN_WHY])
{
    struct fab_hostlist list = {0};
    struct fab_err err;
    if (fab_hostlist_parse(nodes, &list, &err) != 0)
        return run_why(why, false, "%s: %.200s", err.text, nodes);
    for (uint32_t i = 0; i < list.n; i++)
        if (!add_host(hosts, list.names[i], strlen(list.names[i]), slurm_number(numbers, i))) {
            fab_hostlist_free(&list);
            return run_why(why, false, "out of memory");
        }
    fab_hostlist_free(&list);
    return true;
}

static uint32_t environment_number(const char *name)
{
    const char *text = getenv(name);
    const unsigned long number = text != NULL ? strtoul(text, NULL, 10) : 0;
    return number < 100000000 ? (uint32_t)number : 0;
}

/* Spread the ranks evenly, and check that the CPUs of each host suffice. */
static bool slurm_evenly(const struct run_command *c, struct run_hosts *hosts, char why[static RUN_WHY])
{
    const char *cpus = c->hosts == NULL ? getenv("SLURM_JOB_CPUS_PER_NODE") : NULL;
    uint32_t each = c->cpus != 0 ? c->cpus : environment_number("SRUN_CPUS_PER_TASK");
    each = each > 0 ? each : 1;
    for (uint32_t i = 0; i < hosts->n; i++) {
        const uint32_t have = slurm_number(cpus, i);
        hosts->slots[i] = hosts->ranks / hosts->n + (i < hosts->ranks % hosts->n);
        if (have > 0 && (uint64_t)hosts->slots[i] * each > have)
            return run_why(why, false, "the ranks do not fit evenly on the hosts of the allocation");
    }
    return true;
}

/* Find the ranks and slots of srun: those of the allocation, if their number is that of the command. */
static bool slurm_ranks(const struct run_command *c, struct run_hosts *hosts, char why[static RUN_WHY])
{
    uint64_t sum = 0;
    bool known = c->cpus == 0;
    for (uint32_t i = 0; i < hosts->n; i++) {
        sum += hosts->slots[i];
        known = known && hosts->slots[i] > 0;
    }
    if (getenv("SLURM_DISTRIBUTION") != NULL || getenv("SLURM_HOSTFILE") != NULL)
        return run_why(why, false, "the job has its own mapping: SLURM_DISTRIBUTION or SLURM_HOSTFILE");
    if (c->nodes != 0 && c->nodes != hosts->n)
        return run_why(why, false, "the command starts on a part of the hosts, which Slurm chooses");
    hosts->ranks = c->ranks != 0 ? c->ranks : environment_number("SLURM_NTASKS");
    if (c->ranks == 0 && c->per_node != 0 && hosts->ranks != 0 && hosts->ranks != hosts->n * c->per_node)
        return run_why(why, false, "SLURM_NTASKS and --ntasks-per-node contradict each other");
    if (hosts->ranks == 0)
        hosts->ranks = hosts->n * (c->per_node != 0 ? c->per_node : 1);
    return known && sum == hosts->ranks ? true : slurm_evenly(c, hosts, why);
}

/* ---- all ---- */

static bool find_job_hosts(const struct run_command *c, struct run_hosts *hosts, char why[static RUN_WHY])
{
    const char *nodes = getenv("SLURM_JOB_NODELIST"), *file = c->hostfile, *list;
    if (c->launcher == RUN_SRUN) {
        if (nodes == NULL)
            return run_why(why, false, "srun is not inside an allocation: its hosts are not known yet");
        if (c->hosts != NULL && strchr(c->hosts, '/') != NULL)
            return run_why(why, false, "the command has its own host file: %.200s", c->hosts);
        return c->hosts != NULL ? add_slurm_nodes(hosts, c->hosts, NULL, why)
                                : add_slurm_nodes(hosts, nodes, getenv("SLURM_TASKS_PER_NODE"), why);
    }
    if (c->hosts != NULL)
        return add_text(hosts, strdup(c->hosts), ",", 1) ? true : run_why(why, false, "out of memory");
    if (file == NULL && c->launcher == RUN_HYDRA)
        file = getenv("HYDRA_HOST_FILE");
    if (file != NULL) /* without a number Open MPI counts the cores of a host, there */
        return add_file(hosts, file, c->launcher == RUN_HYDRA, why);
    if (nodes != NULL)
        return add_slurm_nodes(hosts, nodes, getenv("SLURM_TASKS_PER_NODE"), why);
    if ((file = getenv("PBS_NODEFILE")) != NULL)
        return add_file(hosts, file, 1, why);
    if ((list = getenv("LSB_HOSTS")) != NULL)
        return add_text(hosts, strdup(list), " ", 1) ? true : run_why(why, false, "out of memory");
    return run_why(why, false, "the hosts of the job are not known: no --host, host file, Slurm, PBS or LSF");
}

bool run_hosts_find(const struct run_command *command, struct run_hosts *out, char why[static RUN_WHY])
{
    uint64_t sum = 0;
    *out = (struct run_hosts){0};
    if (!find_job_hosts(command, out, why))
        return false;
    if (!merge_hosts(out))
        return run_why(why, false, "out of memory");
    if (out->n == 0)
        return run_why(why, false, "the job has no hosts");
    if (command->launcher == RUN_SRUN)
        return slurm_ranks(command, out, why);
    for (uint32_t i = 0; i < out->n; i++) {
        if (command->per_node != 0)
            out->slots[i] = command->per_node;
        if (out->slots[i] == 0)
            return run_why(why, false, "the slots of a host are not known (slots=N, or -N N): %.200s",
                           out->names[i]);
        sum += out->slots[i];
    }
    if (sum > UINT32_MAX / 2)
        return run_why(why, false, "too many slots");
    out->ranks = command->ranks != 0 ? command->ranks : (uint32_t)sum;
    if (out->ranks <= sum)
        return true;
    if (command->launcher != RUN_HYDRA)
        return run_why(why, false, "the ranks need more slots than the hosts have");
    for (uint32_t i = 0; i < out->n; i++) /* Hydra begins again with the first host */
        out->slots[i] *= (uint32_t)((out->ranks + sum - 1) / sum);
    return true;
}

void run_hosts_free(struct run_hosts *hosts)
{
    for (uint32_t i = 0; i < hosts->n; i++)
        free(hosts->names[i]);
    free(hosts->names);
    free(hosts->slots);
    *hosts = (struct run_hosts){0};
}
