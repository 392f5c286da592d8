/*
 * slurm_apply.c - bring slurmctld to the exported file: install the file, move nodes, reconfigure if that is
 * the only way, and read back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "fabricctl/slurm/slurm.h"

#define NODES_MOST          1000 /* of one `scontrol update` */
#define RATE_DEFAULT        20   /* calls a second */
#define RETRY_SECONDS       60   /* slurmctld may answer so long after a reconfigure */
#define RECONFIGURE_SECONDS 300  /* a large slurmctld takes minutes */
#define FAILED_SECONDS      900  /* between two reconfigures of which the first failed */
#define STATE_MOST          65536

/* ---- the state beside the target ---- */

void slurm_digest(const char *text, size_t size, char digest[static SLURM_DIGEST])
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    snprintf(digest, SLURM_DIGEST, "%016llx-%zu", (unsigned long long)hash, size);
}

bool slurm_state_is(const struct slurm_state *state, const char *key, const char *digest)
{
    const char *value = ctl_text_of(state->is, key);
    return value != NULL && strcmp(value, digest) == 0;
}

void slurm_state_set(struct slurm_state *state, const char *key, const char *value)
{
    if (value == NULL)
        json_object_del(state->is, key);
    else
        json_object_set_new(state->is, key, json_string(value));
}

enum ctl_exit slurm_state_open(const char *target, struct slurm_state *state, char why[static CTL_WHY_SIZE])
{
    char text[STATE_MOST], *path = NULL;
    ssize_t n = -1;
    if (asprintf(&path, "%s.state", target) < 0)
        path = NULL;
    *state = (struct slurm_state){.fd = -1};
    if (path != NULL)
        state->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (state->fd < 0)
        snprintf(why, CTL_WHY_SIZE, "%s.state: %s: run this as Slurm's user", target,
                 path != NULL ? strerror(errno) : "out of memory");
    else if (flock(state->fd, LOCK_EX | LOCK_NB) != 0)
        snprintf(why, CTL_WHY_SIZE, "%s: another fabricctl slurm apply is at work on it", target);
    else if ((n = read(state->fd, text, sizeof text)) < 0)
        snprintf(why, CTL_WHY_SIZE, "%s: %s", path, strerror(errno));
    else if ((state->is = json_loadb(text, (size_t)n, 0, NULL)) == NULL || !json_is_object(state->is)) {
        json_decref(state->is); /* a new file, or one that was cut: nothing is known */
        state->is = json_object();
    }
    free(path);
    if (state->is != NULL)
        return CTL_DONE;
    if (state->fd >= 0)
        close(state->fd);
    return CTL_FAILED;
}

static enum ctl_exit state_save(const struct slurm_state *state, char why[static CTL_WHY_SIZE])
{
    char *text = json_dumps(state->is, JSON_INDENT(1) | JSON_SORT_KEYS);
    const size_t size = text != NULL ? strlen(text) : 0;
    const bool good = text != NULL && pwrite(state->fd, text, size, 0) == (ssize_t)size &&
                      ftruncate(state->fd, (off_t)size) == 0;
    if (!good)
        snprintf(why, CTL_WHY_SIZE, "the state beside the target cannot be written: %s", strerror(errno));
    free(text);
    return good ? CTL_DONE : CTL_FAILED;
}

enum ctl_exit slurm_state_close(struct slurm_state *state, char why[static CTL_WHY_SIZE])
{
    const enum ctl_exit status = state_save(state, why);
    close(state->fd);
    json_decref(state->is);
    return status;
}

/* ---- steps ---- */

/* Return whether slurmctld's file is another file with other contents, and its contents. */
static bool target_differs(const struct slurm_run *run, char **was, size_t *size)
{
    *was = run->target != run->path ? ctl_target_read(run->target, size) : NULL;
    return run->target != run->path &&
           (*was == NULL || *size != run->size || memcmp(*was, run->text, *size) != 0);
}

static enum ctl_exit apply_file(const struct slurm_run *run, const char *text, size_t size)
{
    struct ctl_target target;
    enum ctl_exit status = ctl_target_open(run->target, &target) ?: ctl_target_write(&target, text, size);
    status = ctl_target_close(&target, true, status);
    if (status == CTL_DONE)
        printf("%s %s\n", text == run->text ? "installed" : "put back", run->target);
    return status;
}

/* With a file that a reconfigure rejected, slurmctld would not start again: put the former file back. */
static void apply_back(struct slurm_run *run, const char *was, size_t size)
{
    char why[CTL_WHY_SIZE];
    snprintf(why, sizeof why, "%s", run->why);
    if (apply_file(run, was, size) == CTL_DONE)
        snprintf(run->why, sizeof run->why, "%.450s; %.100s has its former content", why, run->target);
}

/* Look again after a reconfigure, until slurmctld answers. */
static enum ctl_exit apply_look(struct slurm_run *run)
{
    const int64_t end = ctl_wait_now() + RETRY_SECONDS * INT64_C(1000);
    enum ctl_exit status;
    while ((status = slurm_run_compare(run)) != CTL_DONE && ctl_wait_now() < end && !ctl_interrupted())
        ctl_wait(-1, 0, ctl_wait_now() + 1000);
    return status;
}

static enum ctl_exit apply_reconfigure(struct slurm_run *run)
{
    static const char *const words[] = {"reconfigure", NULL};
    struct slurm_answer answer;
    enum ctl_exit status = slurm_ask(words, RECONFIGURE_SECONDS, &answer);
    if (status != CTL_DONE)
        snprintf(run->why, sizeof run->why, "%s", answer.why);
    slurm_answer_free(&answer);
    return status == CTL_DONE ? apply_look(run) : status;
}

/* Move nodes of one target. */
static enum ctl_exit apply_move(struct slurm_run *run, const struct slurm_move *moves, uint32_t n)
{
    const char *names[NODES_MOST];
    char *nodes = NULL, *list = NULL, *topology = NULL;
    struct slurm_answer answer;
    enum ctl_exit status = CTL_FAILED;
    for (uint32_t i = 0; i < n; i++)
        names[i] = moves[i].node;
    list = fab_hostlist_fold(names, n);
    if (list == NULL || asprintf(&nodes, "NodeName=%s", list) < 0 ||
        asprintf(&topology, "Topology=%s", moves[0].target) < 0) {
        snprintf(run->why, sizeof run->why, "out of memory");
    } else {
        const char *const words[] = {"update", nodes, topology, NULL};
        status = slurm_ask(words, CTL_ANSWER_SECONDS, &answer);
        if (status != CTL_DONE)
            snprintf(run->why, sizeof run->why, "%s", answer.why);
        slurm_answer_free(&answer);
    }
    free(list);
    free(nodes);
    free(topology);
    return status;
}

/* Move all nodes, at a bounded rate. A rejected call does not stop the others; the next look counts. */
static enum ctl_exit apply_moves(struct slurm_run *run)
{
    const struct slurm_difference *d = &run->difference;
    const uint32_t rate = run->ctl->limit > 0 ? run->ctl->limit : RATE_DEFAULT;
    enum ctl_exit status = CTL_DONE;
    for (uint32_t at = 0, n; at < d->n_moves && !ctl_interrupted(); at += n) {
        n = slurm_moves_together(d, at);
        n = n < NODES_MOST ? n : NODES_MOST;
        if (at > 0)
            ctl_wait(-1, 0, ctl_wait_now() + 1000 / rate);
        if (apply_move(run, &d->moves[at], n) != CTL_DONE)
            status = CTL_FAILED;
    }
    return status;
}

/* ---- the order of the steps ---- */

/* Return the digest of the file and of the difference that a reconfigure is to remove. */
static void apply_digest(const struct slurm_run *run, char digest[static SLURM_DIGEST])
{
    const struct slurm_difference *d = &run->difference;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (uint32_t i = 0; out != NULL && i < d->n_structure; i++)
        fprintf(out, "%s\n", d->structure[i]);
    for (uint32_t i = 0; out != NULL && i < d->n_moves && d->n_structure == 0; i++)
        fprintf(out, "%s: %s\n", d->moves[i].node, d->moves[i].change);
    if (out != NULL) {
        fputs(run->text, out);
        fclose(out);
    }
    slurm_digest(text != NULL ? text : "", text != NULL ? size : 0, digest);
    free(text);
}

/* Write the first difference, and what the operator can do about it. */
static enum ctl_exit apply_left(struct slurm_run *run, const char *advice)
{
    const struct slurm_difference *d = &run->difference;
    if (d->n_structure > 0)
        snprintf(run->why, sizeof run->why, "%.250s%.300s", d->structure[0], advice);
    else if (d->n_moves > 0)
        snprintf(run->why, sizeof run->why, "%.80s: %.200s%.300s", d->moves[0].node, d->moves[0].change,
                 advice);
    else
        snprintf(run->why, sizeof run->why, "%.200s: Slurm does not show whether it has all of it%.300s",
                 run->path, advice);
    return CTL_FAILED;
}

/* Return whether a reconfigure for this difference failed a short time ago. */
static bool has_failed_lately(const struct slurm_state *state, const char *digest)
{
    const int64_t ago =
        (int64_t)time(NULL) - json_integer_value(json_object_get(state->is, "reconfigure_failed_at"));
    return slurm_state_is(state, "reconfigure_failed", digest) && ago >= 0 && ago < FAILED_SECONDS;
}

/* Return whether slurmctld answers; run->why stays. */
static bool answers(struct slurm_run *run)
{
    char why[CTL_WHY_SIZE];
    snprintf(why, sizeof why, "%s", run->why);
    const bool good = slurm_run_compare(run) == CTL_DONE;
    snprintf(run->why, sizeof run->why, "%s", why);
    return good;
}

/*
 * Reconfigure, unless the last reconfigure for this file left the same difference: a further one would only
 * stop slurmctld. Return CTL_DONE if nothing is left that needs a reconfigure.
 */
static enum ctl_exit apply_structure(struct slurm_run *run, struct slurm_state *state)
{
    char digest[SLURM_DIGEST], advice[300];
    const char *why = NULL;
    enum ctl_exit status;
    bool left;
    apply_digest(run, digest);
    if (run->difference.plugin)
        return apply_left(run, ": set TopologyPlugin in slurm.conf, and restart slurmctld");
    if (!slurm_state_is(state, "left", digest)) {
        if (has_failed_lately(state, digest)) {
            run->rejected = true;
            return apply_left(run, ", and a reconfigure failed: the next one is 15 minutes after it: see "
                                   "slurmctld's log");
        }
        slurm_run_needs_reconfigure(run, &why);
        printf("reconfigure: %s\n", why);
        status = apply_reconfigure(run);
        if (status != CTL_DONE) {
            slurm_state_set(state, "reconfigure_failed", digest);
            json_object_set_new(state->is, "reconfigure_failed_at", json_integer(time(NULL)));
            run->rejected = answers(run);
            return status;
        }
        apply_digest(run, digest);
    }
    left = slurm_run_differs(run) && slurm_run_needs_reconfigure(run, &why);
    slurm_state_set(state, "left", left ? digest : NULL);
    if (!left)
        return CTL_DONE;
    snprintf(
        advice, sizeof advice,
        ", also after a reconfigure: see that slurmctld reads %.150s (a link beside slurm.conf), and its log",
        run->target);
    return apply_left(run, advice);
}

/* Bring slurmctld to the file. Two passes: after a reconfigure slurmctld may restore older places of nodes.
 */
static enum ctl_exit apply_difference(struct slurm_run *run, struct slurm_state *state)
{
    const char *why;
    enum ctl_exit status = CTL_DONE;
    if (slurm_run_needs_reconfigure(run, &why))
        status = apply_structure(run, state);
    if (status != CTL_DONE || !slurm_run_differs(run))
        return status;
    slurm_print_moves(&run->difference);
    status = apply_moves(run);
    if (slurm_run_compare(run) != CTL_DONE)
        return CTL_FAILED;
    if (!slurm_run_differs(run))
        return CTL_DONE;
    return status != CTL_DONE ? status : apply_left(run, ": slurmctld did not take the change");
}

/* Report that somebody changed Slurm since it agreed with the file. */
static enum ctl_exit apply_drift(struct slurm_run *run, const char *what)
{
    if (!run->ctl->quiet)
        slurm_print_moves(&run->difference);
    snprintf(run->why, sizeof run->why,
             "%s was changed and differs from %s: see fabricctl slurm diff %s; with --repair apply changes "
             "it back",
             what, run->path, run->path);
    return CTL_FAILED;
}

/*
 * Return whether slurmctld may differ in a way that it does not show: an old one hides nodes of a cloud, and
 * none shows the cells and boxes of a torus.
 */
static bool may_be_hidden(const struct slurm_run *run)
{
    bool hidden = run->version < SLURM_UPDATES && run->difference.n_unknown > 0;
    for (uint32_t i = 0; i < run->file.n; i++)
        hidden |= run->file.items[i].kind == SLURM_TORUS3D;
    return hidden;
}

static enum ctl_exit apply_locked(struct slurm_run *run, struct slurm_state *state)
{
    char digest[SLURM_DIGEST];
    bool agreed, hidden, installed = false;
    char *was = NULL;
    size_t size = 0;
    enum ctl_exit status = CTL_DONE;
    slurm_digest(run->text, run->size, digest);
    agreed = slurm_state_is(state, "agreed", digest);
    if (!agreed) { /* from now on Slurm may have parts of this file: a return to an older file is no drift */
        slurm_state_set(state, "agreed", NULL);
        if (state_save(state, run->why) != CTL_DONE)
            return CTL_FAILED;
    }
    agreed &= !run->ctl->repair;
    if (target_differs(run, &was, &size)) {
        status =
            agreed && was != NULL ? apply_drift(run, run->target) : apply_file(run, run->text, run->size);
        installed = true;
    }
    if (status == CTL_DONE) /* else the message is written, or in run->why */
        status = slurm_run_compare(run);
    if (status == CTL_DONE && slurm_run_differs(run) && agreed)
        status = apply_drift(run, "Slurm");
    if (status != CTL_DONE)
        goto cleanup;
    hidden = may_be_hidden(run) && (installed || !slurm_state_is(state, "agreed", digest));
    if (slurm_run_differs(run) || hidden)
        status = apply_difference(run, state);
    if (status == CTL_DONE) {
        slurm_state_set(state, "agreed", digest);
        slurm_state_set(state, "left", NULL);
        slurm_state_set(state, "reconfigure_failed", NULL);
        slurm_state_set(state, "reconfigure_failed_at", NULL);
    }
    if (installed && was != NULL && run->rejected)
        apply_back(run, was, size);
cleanup:
    free(was);
    return status;
}

enum ctl_exit slurm_apply(struct slurm_run *run)
{
    struct slurm_state state;
    char why[CTL_WHY_SIZE] = "";
    enum ctl_exit status = slurm_state_open(run->target, &state, why);
    if (status != CTL_DONE)
        return ctl_error("%s", why);
    ctl_catch_interrupts();
    status = apply_locked(run, &state);
    if (status == CTL_DONE && ctl_text_of(state.is, "failed") != NULL)
        printf("Slurm agrees with %s again\n", run->path);
    if (status != CTL_DONE && run->why[0] != '\0' &&
        !(run->ctl->quiet && slurm_state_is(&state, "failed", run->why)))
        ctl_error("%s", run->why);
    slurm_state_set(&state, "failed", status != CTL_DONE ? run->why : NULL);
    if (slurm_state_close(&state, why) != CTL_DONE)
        status = ctl_error("%s", why);
    return status;
}
