/* slurm_command.c - the command: compare slurmctld with an exported file, or bring slurmctld to it. */
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fabricctl/slurm/slurm.h"

/* ---- the hold ---- */

/* Return whether an operator holds the exports of this folder, and report it. */
static bool is_held(const struct slurm_run *run)
{
    char *copy = strdup(run->path), *path = NULL, *text = NULL;
    json_t *hold = NULL;
    struct stat st;
    size_t size;
    bool held = true; /* without memory, or if the file cannot be read, change nothing */
    if (copy == NULL || asprintf(&path, "%s/" CTL_HOLD_FILE, dirname(copy)) < 0)
        path = NULL;
    else if (lstat(path, &st) != 0 && (errno == ENOENT || errno == ENOTDIR))
        held = false;
    if (held) {
        text = path != NULL ? ctl_target_read(path, &size) : NULL;
        hold = text != NULL ? json_loads(text, 0, NULL) : NULL;
        if (!run->ctl->quiet)
            ctl_say(stdout, hold, "held since {since} by {user}: {reason}\n");
    }
    json_decref(hold);
    free(text);
    free(path);
    free(copy);
    return held;
}

/* ---- diff ---- */

static json_t *strings_json(char *const *lines, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(list, ctl_json_text(lines[i]));
    return list;
}

static json_t *moves_json(const struct slurm_difference *d)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < d->n_moves; i++)
        json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "node", ctl_json_text(d->moves[i].node),
                                              "change", ctl_json_text(d->moves[i].change), "topology",
                                              ctl_json_text(d->moves[i].target)));
    return list;
}

static enum ctl_exit diff_json(const struct slurm_run *run)
{
    const struct slurm_difference *d = &run->difference;
    const char *why;
    char version[16];
    snprintf(version, sizeof version, "%u.%02u", run->version / 100, run->version % 100);
    return ctl_json_print(stdout,
                          json_pack("{s:o, s:s, s:b, s:b, s:o, s:o, s:o}", "file", ctl_json_text(run->path),
                                    "version", version, "equal", !slurm_run_differs(run), "reconfigure",
                                    slurm_run_differs(run) && slurm_run_needs_reconfigure(run, &why), "moves",
                                    moves_json(d), "structure", strings_json(d->structure, d->n_structure),
                                    "remarks", strings_json(d->remarks, d->n_remarks)));
}

static enum ctl_exit diff_text(const struct slurm_run *run)
{
    const struct slurm_difference *d = &run->difference;
    const char *why;
    for (uint32_t i = 0; i < d->n_structure; i++)
        printf("%s\n", d->structure[i]);
    slurm_print_moves(d);
    for (uint32_t i = 0; i < d->n_remarks; i++)
        printf("note: %s\n", d->remarks[i]);
    if (!slurm_run_differs(run))
        printf("Slurm agrees with %s\n", run->path);
    else if (slurm_run_needs_reconfigure(run, &why))
        printf("fabricctl slurm apply reconfigures Slurm: %s\n", why);
    else
        printf("fabricctl slurm apply moves %u node%s, without a reconfigure\n", d->n_moves,
               d->n_moves == 1 ? "" : "s");
    return CTL_DONE;
}

/* Write the difference as one line to standard error. */
static enum ctl_exit diff_line(const struct slurm_run *run)
{
    const struct slurm_difference *d = &run->difference;
    const uint32_t more = d->n_structure + d->n_moves - 1;
    char others[40] = "";
    if (more > 0)
        snprintf(others, sizeof others, ", and %u more", more);
    return d->n_structure > 0 ? ctl_error("Slurm differs from %s: %s%s", run->path, d->structure[0], others)
                              : ctl_error("Slurm differs from %s: %s: %s%s", run->path, d->moves[0].node,
                                          d->moves[0].change, others);
}

/* Write the first remark as such a line, if there is one. */
static enum ctl_exit remark_line(const struct slurm_run *run)
{
    const struct slurm_difference *d = &run->difference;
    char others[40] = "";
    if (d->n_remarks == 0)
        return CTL_DONE;
    if (d->n_remarks > 1)
        snprintf(others, sizeof others, ", and %u more", d->n_remarks - 1);
    ctl_error("Slurm agrees with %s; %s%s", run->path, d->remarks[0], others);
    return CTL_SAME;
}

static enum ctl_exit slurm_diff(struct slurm_run *run)
{
    enum ctl_exit status = slurm_run_compare(run);
    if (status != CTL_DONE)
        return ctl_error("%s", run->why);
    if (run->ctl->quiet && run->ctl->format == CTL_TEXT)
        return slurm_run_differs(run) ? diff_line(run) : remark_line(run);
    status = run->ctl->format == CTL_JSON ? diff_json(run) : diff_text(run);
    return status == CTL_DONE && slurm_run_differs(run) ? CTL_FAILED : status;
}

/* ---- the command ---- */

/* Return whether the exported file was replaced since it was read. */
static bool is_replaced(const struct slurm_run *run)
{
    size_t size = 0;
    char *text = ctl_target_read(run->path, &size);
    const bool same = text != NULL && size == run->size && memcmp(text, run->text, size) == 0;
    free(text);
    return text != NULL && !same;
}

static enum ctl_exit slurm_once(const struct ctl *ctl, bool apply, bool *again)
{
    struct slurm_run run = {.ctl = ctl, .path = ctl->args[1], .target = ctl->args[1]};
    enum ctl_exit status;
    if (ctl->output != NULL)
        run.target = ctl->output;
    *again = false;
    if (apply && is_held(&run))
        return CTL_DONE;
    status = slurm_run_file(&run);
    if (status != CTL_DONE)
        ctl_error("%s", run.why);
    else
        status = apply ? slurm_apply(&run) : slurm_diff(&run);
    *again = apply && status == CTL_DONE && is_replaced(&run);
    slurm_run_free(&run);
    return status;
}

enum ctl_exit ctl_slurm(const struct ctl *ctl)
{
    const bool apply = strcmp(ctl->args[0], "apply") == 0;
    enum ctl_exit status;
    bool again;
    if (!apply && strcmp(ctl->args[0], "diff") != 0)
        return ctl_usage("no such action: slurm %s: there are diff and apply", ctl->args[0]);
    if (!apply && (ctl->output != NULL || ctl->repair || ctl->limit > 0))
        return ctl_usage("not an option of slurm diff: --output, --repair and --rate are for apply");
    if (apply && ctl->format != CTL_TEXT)
        return ctl_usage("slurm apply has no JSON output: use slurm diff --json");
    do
        status = slurm_once(ctl, apply, &again);
    while (again);
    return status;
}
