/*
 * export.c - a plane, or all of them, in the format of another program: the table of formats, and the
 * command.
 */
#include <jansson.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/export/export.h"
#include "fabricctl/show/show.h"
#include "topo/base/array.h"
#include "topo/base/formats.h"
#include "topo/base/hostlist.h"
#include "topo/base/order.h"
#include "topo/base/pattern.h"

/*
 * ---- comparison of two texts by their meaning ----
 *
 * This is for --if-changed. The meaning of a text is the text without comments, and without blanks and order
 * where they do not matter. The caller frees the results. NULL: there is no memory, or the text is not of
 * this format.
 */

/* Lines of a meaning. */
struct meant {
    char **lines;
    uint32_t n, room;
    bool failed;
};

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Write the names of "Nodes=n[1-3]" one by one in order; other words stay. */
static void put_spelled(FILE *out, const char *word)
{
    const char *equals = strchr(word, '=');
    struct fab_hostlist list;
    if (equals == NULL || fab_hostlist_parse(equals + 1, &list, NULL) != 0) {
        fputs(word, out);
        return;
    }
    qsort(list.names, list.n, sizeof *list.names, compare_texts);
    fwrite(word, 1, (size_t)(equals - word) + 1, out);
    for (uint32_t i = 0; i < list.n; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", list.names[i]);
    fab_hostlist_free(&list);
}

/*
 * Add one line (which is modified) in the normal form. Lines that are not Slurm configuration keep their
 * indentation, because it carries meaning in YAML.
 */
static void meaning_line(struct meant *m, char *line, bool slurm)
{
    const int indentation = slurm ? 0 : (int)strspn(line, " \t");
    char *text = NULL, *rest = NULL;
    size_t size = 0;
    FILE *out;
    line[strcspn(line, "#")] = '\0';
    if (line[strspn(line, " \t\r")] == '\0')
        return;
    out = open_memstream(&text, &size);
    if (out != NULL)
        fprintf(out, "%.*s", indentation, line);
    for (char *word = strtok_r(line, " \t\r", &rest); out != NULL && word != NULL;
         word = strtok_r(NULL, " \t\r", &rest)) {
        if (slurm)
            put_spelled(out, word);
        else
            fputs(word, out);
        putc(' ', out);
    }
    if (out == NULL || fclose(out) != 0 || !FAB_ARRAY_ROOM(&m->lines, &m->room, m->n + UINT64_C(1))) {
        m->failed = true;
        free(text);
        return;
    }
    m->lines[m->n++] = text;
}

static char *meaning_of_lines(const char *text, bool slurm, bool sorted)
{
    struct meant m = {0};
    char *copy = strdup(text), *meaning = NULL, *rest = NULL;
    size_t size;
    FILE *out = open_memstream(&meaning, &size);
    m.failed = copy == NULL || out == NULL;
    for (char *line = m.failed ? NULL : strtok_r(copy, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        meaning_line(&m, line, slurm);
    if (sorted && m.n > 0)
        qsort(m.lines, m.n, sizeof *m.lines, compare_texts);
    for (uint32_t i = 0; i < m.n; i++) {
        if (out != NULL)
            fprintf(out, "%s\n", m.lines[i]);
        free(m.lines[i]);
    }
    m.failed |= out != NULL && fclose(out) != 0;
    if (m.failed) {
        free(meaning);
        meaning = NULL;
    }
    free(m.lines);
    free(copy);
    return meaning;
}

/*
 * Return the meaning of lines of words: without comments (#) and empty lines, with their indentation, and one
 * blank between words.
 */
static char *meaning_lines(const char *text)
{
    return meaning_of_lines(text, false, false);
}

/*
 * Return the meaning of a Slurm configuration: lines sorted, and lists of hosts and switches expanded and
 * sorted.
 */
static char *meaning_slurm(const char *text)
{
    return meaning_of_lines(text, true, true);
}

/* As above, with the lines in their order: Slurm joins blocks that follow each other into larger blocks. */
static char *meaning_slurm_block(const char *text)
{
    return meaning_of_lines(text, true, false);
}

static char *meaning_of_json(json_t *value)
{
    char *meaning = value != NULL ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;
    json_decref(value);
    return meaning;
}

static char *meaning_json(const char *text)
{
    return meaning_of_json(json_loads(text, JSON_DECODE_ANY, NULL));
}

/* Return the contents of all planes, without the generation and its time. */
static char *meaning_planes(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL), *plane;
    size_t i;
    json_array_foreach(json_object_get(value, "planes"), i, plane)
    {
        json_object_del(plane, "generation");
        json_object_del(plane, "published");
    }
    return meaning_of_json(value);
}

/*
 * ---- JSON: the complete contents of all planes in one object.
 *
 * The object has the lists of the commands `planes`, `devices`, ..., each under its name, with the facts of
 * each device.
 */

#define VERSION 1 /* increases when a member changes its meaning */

/* Add facts to the devices, which are listed plane by plane, by index. */
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

static enum ctl_exit export_planes_json(struct ctl_export *x)
{
    static const char *const lists[] = {"planes", "devices", "switches", "links", "groups", "rails"};
    struct ctl all = *x->ctl; /* args hold the format, not requested names */
    json_t *root = json_pack("{s:s, s:i}", "format", "fabricd", "version", VERSION);
    enum ctl_exit status = root != NULL ? CTL_DONE : ctl_nomem();
    all.n_args = 0;
    all.format = CTL_JSON;
    /* facts that are known only after a sweep would change the file at each start of fabricd */
    all.snapshots_only = true;
    for (size_t i = 0; status == CTL_DONE && i < CTL_COUNT(lists); i++) {
        json_t *rows = json_array();
        status = rows != NULL ? ctl_list_into(&all, x->view, lists[i], rows) : ctl_nomem();
        if (json_object_set_new(root, lists[i], rows) != 0 && status == CTL_DONE)
            status = ctl_nomem();
    }
    if (status == CTL_DONE && !add_facts(x->view, json_object_get(root, "devices")))
        status = ctl_nomem();
    if (status == CTL_DONE)
        return ctl_json_print(x->out, root);
    json_decref(root);
    return status;
}

/* ---- a plane, or all of them, in the format of another program ---- */

#define AT_LEAVES_WORDS "formats that have hosts at leaves"

/* Properties of a format, bits. */
enum {
    /* unless --plane chooses one; without the bit: only of --plane, or of the default plane */
    OF_ALL_PLANES = 1,
    OF_HOSTS = 2,    /* a list of hosts may follow its name */
    AT_LEAVES = 4,   /* the format places hosts at leaves, which --interface chooses */
    WITH_MAPPING = 8 /* ends with the mapping of a tree's names (ctl_tree_mapping()) */
};

/*
 * The formats. A new format is an entry here and a function that writes it: from planes, or from the tree of
 * all of them.
 */
static const struct export_format {
    const char *name, *summary;
    unsigned is;
    ctl_export_fn *write;
    ctl_tree_fn *tree;
    char *(*meaning)(const char *text); /* NULL: only identical texts have the same meaning */
    /* Names, in either case, that readers of the format do not take for hosts, with commas between: such
     * hosts are left out, with a message. NULL: none. */
    const char *reserved;
    const char *head; /* first lines of the file; NULL: none */
} formats[] = {
    {"slurm-tree", "Slurm: topology.conf for topology/tree", OF_ALL_PLANES | AT_LEAVES | WITH_MAPPING, NULL,
     ctl_write_slurm_tree, meaning_slurm, CTL_SLURM_WORDS,
     "# Slurm topology.conf (TopologyPlugin=topology/tree), by fabricctl export slurm-tree\n"},
    {"slurm-block", "Slurm: topology.conf for topology/block", OF_ALL_PLANES | AT_LEAVES, NULL,
     ctl_write_slurm_block, meaning_slurm_block, CTL_SLURM_WORDS,
     "# Slurm topology.conf (TopologyPlugin=topology/block), by fabricctl export slurm-block\n"},
    {"slurm-yaml", "Slurm: topology.yaml, several topologies in one file", OF_ALL_PLANES | AT_LEAVES,
     ctl_export_slurm_yaml, NULL, meaning_lines, CTL_SLURM_WORDS,
     "# Slurm topology.yaml (25.05 and later), by fabricctl export slurm-yaml\n---\n"},
    {"slurm-torus3d", "Slurm: topology.yaml with a topology/torus3d", AT_LEAVES, ctl_export_slurm_torus3d,
     NULL, meaning_lines, CTL_SLURM_WORDS,
     "# Slurm topology.yaml (26.05 and later), by fabricctl export slurm-torus3d\n---\n"},
    {"slurm-ring", "Slurm: topology.yaml with a topology/ring", AT_LEAVES, ctl_export_slurm_ring, NULL,
     meaning_lines, CTL_SLURM_WORDS,
     "# Slurm topology.yaml (26.05 and later), by fabricctl export slurm-ring\n---\n"},
    {"flux-jgf", "Flux: the resource graph of Fluxion", OF_ALL_PLANES | AT_LEAVES, NULL, ctl_write_flux_jgf,
     meaning_json, NULL, NULL},
    {"k8s-labels", "Kubernetes: node labels and the Topology of Kueue",
     OF_ALL_PLANES | AT_LEAVES | WITH_MAPPING, NULL, ctl_write_k8s_labels, meaning_lines, NULL,
     "# Kueue's topology and the labels that it reads, by fabricctl export k8s-labels\n---\n"
     "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Topology\nmetadata:\n  name: fabricd\nspec:\n  levels:\n"},
    {"volcano", "Volcano: HyperNodes", OF_ALL_PLANES | AT_LEAVES | WITH_MAPPING, NULL, ctl_write_volcano,
     meaning_lines, NULL, "# Volcano's HyperNodes, by fabricctl export volcano\n"},
    {"nodemap", "OpenSM and infiniband-diags: node-name-map", OF_ALL_PLANES, ctl_export_nodemap, NULL, NULL,
     NULL, NULL},
    {"hostlist", "a list of hosts, near ones next to each other", OF_HOSTS, ctl_export_hostlist, NULL,
     meaning_lines, CTL_SLURM_WORDS, NULL},
    {"rankfile", "Open MPI: a rankfile, near hosts next to each other", OF_HOSTS, ctl_export_rankfile, NULL,
     meaning_lines, "localhost", NULL},
    {"mpich-coords", "MPICH: the coordinates of each rank", OF_HOSTS, ctl_export_mpich_coords, NULL,
     meaning_lines, NULL,
     "# rank: group switch port (MPIR_CVAR_COORDINATES_FILE), by fabricctl export mpich-coords\n"},
    {"topograph", "NVIDIA topograph: a model", OF_ALL_PLANES | AT_LEAVES | WITH_MAPPING, NULL,
     ctl_write_topograph, meaning_lines, NULL,
     "# NVIDIA topograph, a model, by fabricctl export topograph\nswitches:\n"},
    {"topograph-graph", "NVIDIA topograph: the JSON of its engine graph", OF_ALL_PLANES | AT_LEAVES, NULL,
     ctl_write_topograph_graph, meaning_json, NULL, NULL},
    {"ibnetdiscover", "the output of ibnetdiscover(8)", OF_ALL_PLANES, ctl_export_ibnetdiscover, NULL, NULL,
     NULL, "#\n# Topology file: as ibnetdiscover prints it, by fabricctl export ibnetdiscover\n#\n"},
    {"dot", "Graphviz: a picture", 0, ctl_export_dot, NULL, NULL, NULL, NULL},
    {"graphml", "GraphML: the graph of devices and switches", OF_ALL_PLANES, ctl_export_graphml, NULL, NULL,
     NULL, NULL},
    {"simgrid", "SimGrid: a platform with the routes between hosts", OF_HOSTS, ctl_export_simgrid, NULL, NULL,
     NULL, NULL},
    {"json", "JSON: the complete contents of all planes", OF_ALL_PLANES, export_planes_json, NULL,
     meaning_planes, NULL, NULL},
    {"npy", "NumPy: the cost matrix", 0, ctl_export_npy, NULL, NULL, NULL, NULL},
    {"csv", "CSV: the cost matrix, with device names", 0, ctl_export_csv, NULL, NULL, NULL, NULL},
};

void ctl_export_help(void)
{
    puts("\nFormats:");
    for (size_t i = 0; i < CTL_COUNT(formats); i++)
        printf("  %-16s %s\n", formats[i].name, formats[i].summary);
}

static const struct export_format *format_by_name(const char *name)
{
    const bool known = fab_is_export_format(name, strlen(name));
    for (size_t i = 0; known && i < CTL_COUNT(formats); i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    ctl_usage("no such format: %s: there are %s", name, FAB_EXPORT_FORMATS);
    return NULL;
}

/*
 * Return whether the existing file has the same meaning. A file that cannot be read, or is of another kind,
 * does not.
 */
static bool says_the_same(const struct export_format *format, const char *path, const char *text, size_t size)
{
    size_t size_there;
    char *there = ctl_target_read(path, &size_there), *was = NULL, *is = NULL;
    bool same = there != NULL && size_there == size && memcmp(there, text, size) == 0;
    if (there != NULL && !same && format->meaning != NULL && memchr(there, '\0', size_there) == NULL) {
        was = format->meaning(there);
        is = format->meaning(text);
        same = was != NULL && is != NULL && strcmp(was, is) == 0;
    }
    free(there);
    free(was);
    free(is);
    return same;
}

static enum ctl_exit export_write(const struct ctl *ctl, const char *text, size_t size)
{
    struct ctl_target target;
    enum ctl_exit status;
    ctl_catch_interrupts();
    status = ctl_target_open(ctl->output != NULL ? ctl->output : "-", &target);
    if (status == CTL_DONE)
        status = ctl_target_write(&target, text, size);
    return ctl_target_close(&target, true, status);
}

static enum ctl_exit write_format(const struct export_format *format, struct ctl_export *x)
{
    struct ctl_tree tree;
    enum ctl_exit status;
    if (format->head != NULL)
        fputs(format->head, x->out);
    if (format->tree == NULL)
        return format->write(x);
    status = ctl_tree_build(x, &tree) ?: format->tree(x, &tree);
    if (status == CTL_DONE && (format->is & WITH_MAPPING) != 0)
        ctl_tree_mapping(x->out, &tree, NULL);
    ctl_tree_free(&tree);
    return status;
}

/* Write the text to memory first: a failure leaves the file as it is. */
static enum ctl_exit export_view(const struct export_format *format, struct ctl_export *x)
{
    char *text = NULL;
    size_t size = 0;
    enum ctl_exit status;
    bool failed;
    x->out = open_memstream(&text, &size);
    if (x->out == NULL)
        return ctl_nomem();
    status = write_format(format, x) ?: ctl_above_check(x);
    failed = ferror(x->out) != 0;
    if (fclose(x->out) != 0 || (failed && status == CTL_DONE))
        status = ctl_nomem();
    if (status == CTL_DONE && x->ctl->strict && x->n_lost > 0)
        status = ctl_error(
            "not written: %s cannot describe the fabric completely: without --strict it leaves that out",
            format->name);
    if (status == CTL_DONE)
        status = ctl_hosts_check(x);
    if (status == CTL_DONE && x->ctl->if_changed && says_the_same(format, x->ctl->output, text, size))
        status = CTL_SAME;
    if (status == CTL_DONE)
        status = export_write(x->ctl, text, size);
    if (status == CTL_DONE || status == CTL_SAME) {
        const enum ctl_exit named = ctl_names_save(x->names);
        status = named != CTL_DONE ? named : status;
    }
    free(text);
    return status;
}

/* A plane keeps its index; the default plane changes as soon as another one has more devices. */
static int compare_indices(const void *a, const void *b)
{
    struct pmixfab_plane x = {0}, y = {0};
    (void)pmixfab_plane(*(struct pmixfab *const *)a, &x);
    (void)pmixfab_plane(*(struct pmixfab *const *)b, &y);
    return FAB_ORDER(x.index, y.index);
}

/* Hold the exports of the daemon, or end the hold. */
static enum ctl_exit export_hold(const struct ctl *ctl)
{
    const struct passwd *user = getpwuid(getuid());
    json_t *answer = NULL;
    enum ctl_exit status;
    if (ctl->n_args > 0 || (ctl->hold != NULL && ctl->release))
        return ctl_usage("usage: fabricctl export --hold REASON, or fabricctl export --release");
    status = ctl_ask(ctl,
                     ctl->release ? json_pack("{s:s, s:b}", "op", "hold", "release", 1)
                                  : json_pack("{s:s, s:s, s:s*}", "op", "hold", "reason", ctl->hold, "user",
                                              user != NULL ? user->pw_name : NULL),
                     CTL_ANSWER_SECONDS, &answer);
    if (status == CTL_DONE)
        puts(ctl->release ? "the exports continue"
                          : "the exports are held; to continue: fabricctl export --release");
    json_decref(answer);
    return status;
}

/* Check that the format has the given options. */
static enum ctl_exit check_options(const struct ctl *ctl, const struct export_format *format)
{
    const bool leaves = (format->is & AT_LEAVES) != 0, yaml = ctl->topologies != NULL;
    const bool blocks =
        strcmp(format->name, "slurm-block") == 0 || (yaml && strcmp(format->name, "slurm-yaml") == 0);
    const struct {
        const char *option, *formats;
        bool given, good;
    } options[] = {
        {"--block-sizes", "slurm-block, and slurm-yaml with --topologies", ctl->block_sizes != NULL, blocks},
        {"--spare", "slurm-block, and slurm-yaml with --topologies", ctl->spare > 0, blocks},
        {"--slurm", "slurm-block", ctl->slurm > 0, strcmp(format->name, "slurm-block") == 0},
        {"--topologies", "slurm-yaml", yaml, strcmp(format->name, "slurm-yaml") == 0},
        {"--interface", AT_LEAVES_WORDS, ctl->interface != NULL, leaves},
        {"--nodes", AT_LEAVES_WORDS, ctl->nodes != NULL, leaves},
        {"--above", AT_LEAVES_WORDS, ctl->above != NULL, leaves},
        {"--max-shrink", AT_LEAVES_WORDS, ctl->max_shrink < 100, leaves},
    };
    if (ctl->n_args > 1 && (format->is & OF_HOSTS) == 0)
        return ctl_usage("too many arguments: %s: %s takes no list of hosts", ctl->args[1], format->name);
    for (size_t i = 0; i < CTL_COUNT(options); i++)
        if (options[i].given && !options[i].good)
            return ctl_usage("not an option of %s: %s is for %s", format->name, options[i].option,
                             options[i].formats);
    if (ctl->interface != NULL && !fab_pattern_ok(ctl->interface))
        return ctl_usage("no pattern: --interface %s: give names with commas between them, as mlx5_0,leaf-c*",
                         ctl->interface);
    if (ctl->if_changed && (ctl->output == NULL || strcmp(ctl->output, "-") == 0))
        return ctl_usage("nothing to compare with: --if-changed needs -o FILE");
    return CTL_DONE;
}

enum ctl_exit ctl_export(const struct ctl *ctl)
{
    if (ctl->hold != NULL || ctl->release)
        return export_hold(ctl);
    if (ctl->n_args == 0)
        return ctl_usage("too few arguments: export: usage: fabricctl export FORMAT [HOSTLIST]");
    const struct export_format *format = format_by_name(ctl->args[0]);
    struct ctl_view view = {.n = 0};
    struct ctl_export_names names = {.path = NULL};
    struct ctl_export x = {.ctl = ctl, .view = &view, .names = &names};
    enum ctl_exit status = format != NULL ? check_options(ctl, format) : CTL_USAGE;
    if (status != CTL_DONE)
        return status;
    status = (format->is & OF_ALL_PLANES) != 0 ? ctl_view_all(ctl, &view) : ctl_view_one(ctl, &view);
    if (status != CTL_DONE)
        return status;
    x.reserved = format->reserved;
    qsort(view.planes, view.n, sizeof(struct pmixfab *), compare_indices);
    if ((format->is & AT_LEAVES) != 0)
        status = ctl_bases_choose(&x) ?: ctl_only_read(&x);
    if (status == CTL_DONE && ctl->above != NULL)
        status = ctl_above_read(ctl->above, &x.above);
    if (status == CTL_DONE)
        status = export_view(format, &x);
    free(x.chosen);
    fab_hostlist_free(&x.only);
    ctl_above_free(x.above);
    ctl_names_free(&names);
    ctl_view_close(&view);
    return status;
}
