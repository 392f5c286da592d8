/* slurm_view.c - one look at the exported file and at slurmctld. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricctl/slurm/slurm.h"
#include "topo/base/array.h"

#define FILE_MOST (64 << 20) /* bytes; larger than any topology */
/* slurmctld searches all paths between its switches for each new switch: with so many steps a reconfigure is
 * quicker. */
#define STEPS_MOST 4e9

__attribute__((format(printf, 2, 3))) static enum ctl_exit run_failed(struct slurm_run *run, const char *fmt,
                                                                      ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(run->why, sizeof run->why, fmt, args);
    va_end(args);
    return CTL_FAILED;
}

/* ---- the exported file ---- */

/* Another user may write the file: accept no link to a file that only this user can read. */
static enum ctl_exit read_regular(struct slurm_run *run)
{
    const int fd = open(run->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    struct stat st;
    ssize_t got = 1;
    enum ctl_exit status = CTL_DONE;
    if (fd < 0)
        return errno == ELOOP ? run_failed(run, "%s: not a regular file", run->path)
                              : run_failed(run, "%s: %s", run->path, strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        status = run_failed(run, "%s: not a regular file", run->path);
    else if (st.st_size > FILE_MOST)
        status = run_failed(run, "%s: larger than 64 MiB", run->path);
    else if ((run->text = malloc((size_t)st.st_size + 1)) == NULL)
        status = run_failed(run, "out of memory");
    while (status == CTL_DONE && got > 0 && run->size < (size_t)st.st_size) {
        got = read(fd, run->text + run->size, (size_t)st.st_size - run->size);
        run->size += got > 0 ? (size_t)got : 0;
    }
    if (status == CTL_DONE && got < 0)
        status = run_failed(run, "%s: %s", run->path, strerror(errno));
    close(fd);
    if (status != CTL_DONE)
        return status;
    run->text[run->size] = '\0';
    return strlen(run->text) == run->size ? CTL_DONE : run_failed(run, "%s: not a text", run->path);
}

enum ctl_exit slurm_run_file(struct slurm_run *run)
{
    struct fab_err err = {""};
    uint32_t n_places = 0;
    enum ctl_exit status = read_regular(run);
    if (status == CTL_DONE && slurm_read(run->text, run->path, &run->file, &err) != 0)
        status = run_failed(run, "%s", err.text);
    for (uint32_t i = 0; status == CTL_DONE && i < run->file.n; i++)
        n_places += run->file.items[i].n_places;
    if (status == CTL_DONE && n_places == 0)
        status = run_failed(run, "%s: no nodes in it: nothing is done", run->path);
    return status;
}

/* ---- slurmctld ---- */

/* Add what slurmctld shows of one topology. */
static enum ctl_exit add_shown(struct slurm_run *run, const char *name, const char *text)
{
    struct slurm_topologies shown;
    struct fab_err err = {""};
    if (*text != '\0' && text[strlen(text) - 1] != '\n')
        return run_failed(run, "scontrol show topology: the answer was cut");
    if (slurm_read(text, "scontrol show topology", &shown, &err) != 0)
        return run_failed(run, "%s", err.text);
    if (!FAB_ARRAY_ROOM(&run->slurm.items, &run->slurm.room, run->slurm.n + UINT64_C(1))) {
        slurm_topologies_free(&shown);
        return run_failed(run, "out of memory");
    }
    if (shown.n == 0) /* topology/flat shows nothing */
        run->slurm.items[run->slurm.n] = (struct slurm_topology){.kind = SLURM_FLAT};
    else {
        run->slurm.items[run->slurm.n] = shown.items[0];
        shown.n = 0;
    }
    free(run->slurm.items[run->slurm.n].name);
    run->slurm.items[run->slurm.n].name = strdup(name);
    slurm_topologies_free(&shown);
    return run->slurm.items[run->slurm.n++].name != NULL ? CTL_DONE : run_failed(run, "out of memory");
}

/* Return whether the failure of `show topology` means that there is none, or none with this name. */
static bool is_no_topology(const char *why)
{
    return strstr(why, "No topology information") != NULL ||
           strstr(why, "Requested topology configuration is not available") != NULL;
}

static enum ctl_exit ask_topology(struct slurm_run *run, const char *name)
{
    const char *words[] = {"show", "topology", run->file.yaml ? name : NULL, NULL};
    struct slurm_answer answer;
    enum ctl_exit status = slurm_ask(words, CTL_ANSWER_SECONDS, &answer);
    if (status == CTL_DONE)
        status = add_shown(run, name, answer.text);
    else if (is_no_topology(answer.why))
        status = run->file.yaml ? CTL_DONE : add_shown(run, name, "");
    else
        run_failed(run, "%s", answer.why);
    slurm_answer_free(&answer);
    return status;
}

static int compare_node_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/*
 * List the nodes that slurmctld shows or has in a topology, sorted. Before 23.02 it does
 * not show the powered down nodes of a cloud.
 */
static enum ctl_exit list_nodes(struct slurm_run *run)
{
    struct slurm_answer answer;
    struct fab_hostlist *nodes = &run->nodes;
    uint32_t kept = 0;
    if (slurm_nodes(NULL, nodes, &answer) != CTL_DONE)
        return run_failed(run, "%s", answer.why);
    for (uint32_t i = 0; i < run->slurm.n; i++) {
        const struct slurm_topology *t = &run->slurm.items[i];
        for (uint32_t p = 0; p < t->n_places; p++) {
            char *copy = strdup(t->places[p].node);
            if (copy == NULL || !FAB_ARRAY_ROOM(&nodes->names, &nodes->room, nodes->n + UINT64_C(1))) {
                free(copy);
                return run_failed(run, "out of memory");
            }
            nodes->names[nodes->n++] = copy;
        }
    }
    if (nodes->n > 0)
        qsort(nodes->names, nodes->n, sizeof *nodes->names, compare_node_names);
    for (uint32_t i = 0; i < nodes->n; i++)
        if (kept > 0 && strcmp(nodes->names[kept - 1], nodes->names[i]) == 0)
            free(nodes->names[i]);
        else
            nodes->names[kept++] = nodes->names[i];
    nodes->n = kept;
    return CTL_DONE;
}

enum ctl_exit slurm_run_compare(struct slurm_run *run)
{
    struct slurm_answer answer;
    enum ctl_exit status = CTL_DONE;
    slurm_topologies_free(&run->slurm);
    slurm_difference_free(&run->difference);
    fab_hostlist_free(&run->nodes);
    if (run->version == 0) {
        run->version = slurm_version(&answer);
        if (run->version == 0)
            return run_failed(run, "%s", answer.why);
    }
    if (run->file.yaml && run->version < SLURM_UPDATES)
        return run_failed(run, "%s: Slurm %u.%02u reads no topology.yaml: export slurm-tree or slurm-block",
                          run->path, run->version / 100, run->version % 100);
    for (uint32_t i = 0; status == CTL_DONE && i < run->file.n; i++)
        status = ask_topology(run, run->file.items[i].name);
    if (status == CTL_DONE)
        status = list_nodes(run);
    if (status == CTL_DONE && slurm_compare(&run->file, &run->slurm, &run->nodes,
                                            run->version >= SLURM_UPDATES, &run->difference) != 0)
        status = run_failed(run, "out of memory");
    return status;
}

void slurm_run_free(struct slurm_run *run)
{
    free(run->text);
    slurm_difference_free(&run->difference);
    slurm_topologies_free(&run->file);
    slurm_topologies_free(&run->slurm);
    fab_hostlist_free(&run->nodes);
}

bool slurm_run_differs(const struct slurm_run *run)
{
    return run->difference.n_moves > 0 || run->difference.n_structure > 0;
}

/* Return whether the nodes of the file have places that `scontrol update` cannot name. */
static bool has_positions(const struct slurm_topologies *file)
{
    for (uint32_t i = 0; i < file->n; i++)
        if (file->items[i].kind == SLURM_RING || file->items[i].kind == SLURM_TORUS3D)
            return true;
    return false;
}

bool slurm_run_needs_reconfigure(const struct slurm_run *run, const char **why)
{
    const struct slurm_difference *d = &run->difference;
    const double n = d->n_units;
    *why = d->n_structure > 0                      ? d->structure[0]
           : run->version < SLURM_UPDATES          ? "this Slurm moves no node without a reconfigure"
           : has_positions(&run->file)             ? "a ring or torus changes only with its file"
           : d->new_units * n * n * n > STEPS_MOST ? "so many new switches are quicker with a reconfigure"
                                                   : NULL;
    return *why != NULL;
}
