/*
 * chosen_hosts.c - the hosts of --nodes, and the hosts of the previous file
 * before.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fabricctl/export/export.h"
#include "fabricctl/slurm/slurm.h"
#include "topo/base/natural.h"

#define FEWEST 10      /* hosts: fewer may leave a file at any time */
#define SHOWN  200     /* bytes of a list in a message */
#define KEY    "hosts" /* in FILE.names; no GUID */

/* ---- --nodes: only these hosts ---- */

static int compare_host(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Replace a name by the name that the fabric has for the host. False: no plane has such a host. */
static bool name_of_fabric(const struct ctl_view *view, char **name)
{
    for (size_t i = 0; i < view->n; i++) {
        uint32_t host, first, n;
        const char *served;
        char *copy;
        if (pmixfab_find_host(view->planes[i], *name, &host) != 0 ||
            pmixfab_host(view->planes[i], host, &served, &first, &n) != 0)
            continue;
        copy = strcmp(served, *name) != 0 ? strdup(served) : NULL;
        if (copy != NULL) {
            free(*name);
            *name = copy;
        }
        return true;
    }
    return false;
}

/* Report the listed hosts that no plane has. They are no loss: the operator may list hosts of the future. */
static enum ctl_exit only_known(struct ctl_export *x)
{
    const char **unknown = malloc((x->only.n + (size_t)1) * sizeof *unknown);
    uint32_t n = 0;
    char *list = NULL;
    if (unknown == NULL)
        return ctl_nomem();
    for (uint32_t i = 0; i < x->only.n; i++)
        if (!name_of_fabric(x->view, &x->only.names[i]))
            unknown[n++] = x->only.names[i];
    if (n > 0)
        list = fab_hostlist_fold(unknown, n);
    if (list != NULL)
        ctl_error("%u host%s of --nodes %s not in the fabric: %.*s%s", n, n == 1 ? "" : "s",
                  n == 1 ? "is" : "are", SHOWN, list, strlen(list) > SHOWN ? "..." : "");
    free(list);
    free(unknown);
    return CTL_DONE;
}

enum ctl_exit ctl_only_read(struct ctl_export *x)
{
    const char *text = x->ctl->nodes;
    struct slurm_answer answer = {.text = NULL};
    struct fab_err err = {{0}};
    enum ctl_exit status = CTL_DONE;
    if (text == NULL)
        return CTL_DONE;
    if (strcmp(text, "slurm:") == 0)
        return ctl_usage("no feature: --nodes slurm: give a feature after the colon, or leave it out");
    if (strcmp(text, "slurm") == 0 || strncmp(text, "slurm:", 6) == 0) {
        if (slurm_nodes(text[5] == ':' ? text + 6 : NULL, &x->only, &answer) != CTL_DONE)
            return ctl_error("not written: %s", answer.why);
    } else if (fab_hostlist_parse(text, &x->only, &err) != 0)
        return ctl_usage("no list of hosts: --nodes %.200s: %s", text, err.text);
    else
        status = only_known(x);
    if (x->only.n > 0)
        qsort(x->only.names, x->only.n, sizeof *x->only.names, compare_host);
    return status;
}

bool ctl_only_has(const struct ctl_export *x, const char *host)
{
    return x->ctl->nodes == NULL || (x->only.n > 0 && bsearch(&host, x->only.names, x->only.n,
                                                              sizeof *x->only.names, compare_host) != NULL);
}

/* ---- --max-shrink: not many hosts may leave the file at once ---- */

bool ctl_hosts_note(const struct ctl_export_names *names, const struct ctl_tree *tree)
{
    bool good = true;
    for (uint32_t h = 0; h < tree->n_hosts; h++)
        good &= json_object_set_new(names->hosts, tree->hosts[h], json_true()) == 0;
    return good;
}

static int compare_natural(const void *a, const void *b)
{
    return fab_natural_cmp(*(const char *const *)a, *(const char *const *)b);
}

/* Record the hosts of the file, folded, in natural order. */
static bool hosts_record(const struct ctl_export_names *names)
{
    const char **hosts = malloc((json_object_size(names->hosts) + 1) * sizeof *hosts), *host;
    char *list = NULL;
    json_t *value;
    size_t n = 0;
    bool good;
    json_object_foreach(names->hosts, host, value)
    {
        if (hosts != NULL)
            hosts[n++] = host;
    }
    if (hosts != NULL) {
        qsort(hosts, n, sizeof *hosts, compare_natural);
        list = fab_hostlist_fold(hosts, n);
    }
    good = list != NULL && json_object_set_new(names->is, KEY, json_string(list)) == 0;
    free(list);
    free(hosts);
    return good;
}

enum ctl_exit ctl_hosts_check(const struct ctl_export *x)
{
    const struct ctl_export_names *names = x->names;
    const char *was = json_string_value(json_object_get(names->was, KEY));
    struct fab_hostlist list = {0};
    struct stat st;
    uint32_t gone = 0;
    enum ctl_exit status = CTL_DONE;
    if (names->is == NULL)
        return CTL_DONE;
    if (!hosts_record(names))
        return ctl_nomem();
    if (was == NULL || x->ctl->max_shrink >= 100 || stat(x->ctl->output, &st) != 0)
        return CTL_DONE;
    if (fab_hostlist_parse(was, &list, NULL) != 0) /* somebody wrote in it */
        return CTL_DONE;
    for (uint32_t i = 0; i < list.n; i++)
        gone += json_object_get(names->hosts, list.names[i]) == NULL;
    if (gone >= FEWEST && gone * UINT64_C(100) > list.n * (uint64_t)x->ctl->max_shrink)
        status = ctl_error("not written: %u of %u hosts would leave %s, more than %u%%: if that is right, "
                           "run \"fabricctl export %s ... --max-shrink 100\", or remove the file",
                           gone, list.n, x->ctl->output, x->ctl->max_shrink, x->ctl->args[0]);
    fab_hostlist_free(&list);
    return status;
}
