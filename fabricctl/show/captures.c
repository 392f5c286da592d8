/* captures.c - two recorded fabrics, read and compared by the code that a daemon has for a sweep. */
#include "fabricctl/show/captures.h"

#include <string.h>

#include "probes/capture/capture_file.h"
#include "topo/changes/changes.h"
#include "topo/model/names.h"

static void captures_note(enum pmixfab_level level, const char *line, void *cbdata)
{
    (void)cbdata;
    if (level <= PMIXFAB_LOG_WARNING)
        ctl_error("%s", line);
}

/* Read and named as without any configuration. inv is initialised here. */
static enum ctl_exit read_capture(const char *path, struct fab_inventory *inv)
{
    const struct probe_config config = {.arg = path};
    const struct probe_sink sink = {captures_note, NULL};
    struct fab_names *names = NULL;
    struct fab_err err = {""};
    int rc;

    fab_inventory_init(inv);
    rc = probe_file.run(&config, &sink, inv, &err);
    if (rc == PMIXFAB_OK)
        rc = fab_names_new(NULL, &names, &err);
    if (rc == PMIXFAB_OK)
        rc = fab_names_apply(names, inv, &err);
    fab_names_free(names);
    return rc == PMIXFAB_OK ? CTL_DONE : ctl_usage("%s", err.text);
}

static json_t *captured_subjects(const char *subjects)
{
    json_t *list = json_array();

    for (; subjects != NULL && *subjects != '\0'; subjects = fab_subject_next(subjects))
        json_array_append_new(list, json_string(subjects));
    return list;
}

static json_t *captured_changes(const struct fab_diff *diff)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < diff->n; i++) {
        const struct fab_change *c = &diff->changes[i];

        json_array_append_new(list, json_pack("{s:n, s:n, s:s, s:s, s:s, s:s, s:s, s:b, s:n, s:n, s:o}",
                                              "generation", "time", "kind", fab_change_name(c->kind), "what",
                                              c->what, "before", c->before, "after", c->after, "why",
                                              c->why != NULL ? c->why : "", "planned", 0, "first_seen",
                                              "last_seen", "subjects", captured_subjects(c->subjects)));
    }
    return list;
}

enum ctl_exit ctl_compare_captures(const char *before, const char *after, json_t **changes)
{
    struct fab_inventory old, new;
    struct fab_diff diff = {0};
    enum ctl_exit status = read_capture(before, &old);
    int rc;

    *changes = NULL;
    fab_inventory_init(&new);
    if (status == CTL_DONE)
        status = read_capture(after, &new);
    if (status == CTL_DONE) {
        rc = fab_diff_compute(&old, &new, &diff);
        if (rc == PMIXFAB_OK)
            rc = fab_diff_correlate_with(&old, &new, NULL, &diff);
        *changes = rc == PMIXFAB_OK ? captured_changes(&diff) : NULL;
        if (*changes == NULL)
            status = ctl_nomem();
    }
    fab_diff_destroy(&diff);
    fab_inventory_destroy(&old);
    fab_inventory_destroy(&new);
    return status;
}
