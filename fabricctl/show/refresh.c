/*
 * refresh.c - sweep the fabric now and show the changes, compare it with the served state, or announce a
 * swap.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/show/show.h"

/* ---- sweep the fabric now, and show the changes ---- */

bool ctl_mentions(const char *what, const char *host)
{
    size_t len = strlen(host);
    if (len == 0)
        return false;
    for (const char *p = strstr(what, host); p != NULL; p = strstr(p + 1, host)) {
        bool begins = p == what || (!isalnum((unsigned char)p[-1]) && strchr("._-", p[-1]) == NULL);
        bool ends = p[len] == '\0' || (!isalnum((unsigned char)p[len]) && strchr("._-", p[len]) == NULL);
        if (begins && ends)
            return true;
    }
    return false;
}

/* Print a line on suppressed objects of a sweep's answer, if there are any. */
static void print_suppressed(const json_t *answer)
{
    const json_int_t cables = ctl_number_of(answer, "suppressed");
    const json_int_t switches = ctl_number_of(answer, "suppressed_switches");
    if (cables + switches == 0)
        return;
    if (cables > 0)
        printf("%lld cable%s%s", (long long)cables, cables == 1 ? "" : "s", switches > 0 ? " and " : "");
    if (switches > 0)
        printf("%lld switch%s", (long long)switches, switches == 1 ? "" : "es");
    printf(" %s suppressed: see fabricctl check\n", cables + switches == 1 ? "is" : "are");
}

/* Add the neighbours that are in this plane. */
static void add_around(const char *name, const struct pmixfab *fab, json_t *names)
{
    struct pmixfab_plane plane = {0};
    struct pmixfab_device device;
    struct pmixfab_switch sw;
    char guid[24];
    pmixfab_plane(fab, &plane);
    for (uint32_t s = 0; s < plane.n_switches; s++) {
        if (pmixfab_switch(fab, s, &sw) != 0)
            continue;
        snprintf(guid, sizeof(guid), "0x%016" PRIx64, sw.guid);
        if (strcmp(sw.name, name) != 0 && strcmp(guid, name) != 0)
            continue;
        json_object_set_new(names, sw.name, json_true());
        for (uint32_t d = 0; d < plane.n_devices; d++)
            if (pmixfab_device(fab, d, &device) == 0 && device.switch_index == s)
                json_object_set_new(names, device.host, json_true());
    }
}

/*
 * Return the names of a switch and of its neighbours, as keys of a new object. The name of the switch may be
 * a GUID. On failure write a message and return NULL.
 */
static json_t *switch_neighbours(const struct ctl *ctl)
{
    json_t *names = json_object();
    struct ctl_view view;
    if (ctl_view_all(ctl, &view) != CTL_DONE) {
        json_decref(names);
        return NULL;
    }
    json_object_set_new(names, ctl->sw, json_true());
    for (size_t i = 0; i < view.n; i++)
        add_around(ctl->sw, view.planes[i], names);
    ctl_view_close(&view);
    return names;
}

/* Return whether the change is about one of the names. */
static bool change_names_any(const json_t *row, json_t *names)
{
    static const char *const texts[] = {"what", "before", "after"};
    const json_t *subjects = json_object_get(row, "subjects"), *one;
    const char *name;
    json_t *value;
    size_t i;
    json_array_foreach(subjects, i, one)
    {
        if (json_is_string(one) && json_object_get(names, json_string_value(one)) != NULL)
            return true;
    }
    json_object_foreach(names, name, value)
    {
        for (i = 0; i < CTL_COUNT(texts); i++) {
            const char *text = ctl_text_of(row, texts[i]);
            if (text != NULL && ctl_mentions(text, name))
                return true;
        }
    }
    return false;
}

/*
 * Return the changes about the switch or its neighbours, as a new reference. Without a switch, return all
 * changes. On failure write a message and return NULL.
 */
static json_t *changes_filter(const struct ctl *ctl, const json_t *changes)
{
    json_t *kept = json_array(), *names = NULL;
    if (ctl->sw != NULL && json_array_size(changes) > 0 && (names = switch_neighbours(ctl)) == NULL) {
        json_decref(kept);
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(changes); i++) {
        json_t *row = json_array_get(changes, i);
        if (names == NULL || change_names_any(row, names))
            json_array_append(kept, row);
    }
    json_decref(names);
    return kept;
}

/* Write " (...)" on the swept part, and how much of it answered; "" for a complete sweep without --switch. */
static void say_scope(const struct ctl *ctl, const json_t *answer, char *out, size_t size)
{
    const char *scope = ctl_text_of(answer, "scope");
    const char *why = ctl_text_of(answer, "scope_reason");
    char swept[CTL_WHY_SIZE] = "";
    if (ctl->sw != NULL && scope != NULL && strcmp(scope, "switch") == 0)
        snprintf(swept, sizeof(swept), "%s and its neighbours were swept", ctl->sw);
    else if (ctl->sw != NULL && scope != NULL)
        snprintf(swept, sizeof(swept), "the whole fabric was swept%s%s", why != NULL ? ": " : "",
                 why != NULL ? why : "");
    if (ctl_is(answer, "partial"))
        snprintf(out, size, " (%s%sonly a part of the fabric answered)", swept, swept[0] != '\0' ? "; " : "");
    else
        snprintf(out, size, swept[0] != '\0' ? " (%s)" : "%s", swept);
}

/* Print the outcome in a line. others: changes that are not about the requested host or switch. */
static void print_outcome(const struct ctl *ctl, const json_t *answer, bool any, size_t others)
{
    json_int_t generation = ctl_number_of(answer, "generation");
    bool changed = ctl_is(answer, "changed");
    char swept[CTL_WHY_SIZE + 64];
    say_scope(ctl, answer, swept, sizeof(swept));
    printf("generation %lld, %s%s%s\n", (long long)generation,
           changed ? "published just now" : "as before: nothing changed", swept,
           changed && (any || others == 0) ? ":" : "");
    if (others > 0)
        printf("no change of %s; %zu other change%s: see fabricctl diff\n",
               ctl->host != NULL ? ctl->host : ctl->sw, others, others == 1 ? "" : "s");
}

static enum ctl_exit show_refresh(const struct ctl *ctl, const json_t *answer, const json_t *changes,
                                  size_t others)
{
    json_int_t generation = ctl_number_of(answer, "generation");
    bool changed = ctl_is(answer, "changed");
    bool partial = ctl_is(answer, "partial");
    const json_t *scope = json_object_get(answer, "scope"), *why = json_object_get(answer, "scope_reason");
    enum ctl_exit status;
    json_t *rows;
    if (ctl->format == CTL_TEXT)
        print_outcome(ctl, answer, json_array_size(changes) > 0, others);
    if (ctl->format != CTL_JSON) {
        status =
            (changed && others == 0) || ctl->format == CTL_CSV ? ctl_changes_table(ctl, changes) : CTL_DONE;
        if (ctl->format == CTL_TEXT)
            print_suppressed(answer);
        return status;
    }
    rows = ctl_changes_json(ctl, changes);
    if (rows == NULL)
        return CTL_FAILED;
    return ctl_json_print(stdout, json_pack("{s:I, s:b, s:b, s:O?, s:O?, s:O?, s:O?, s:o}", "generation",
                                            generation, "changed", changed, "partial", partial, "scope",
                                            scope, "scope_reason", why, "suppressed",
                                            json_object_get(answer, "suppressed"), "suppressed_switches",
                                            json_object_get(answer, "suppressed_switches"), "changes", rows));
}

/* Show the answer of a daemon on a node, which scans its own devices and delivers its report. */
static enum ctl_exit show_scanned(const struct ctl *ctl, const json_t *answer)
{
    const json_int_t failed = ctl_number_of(answer, "probes_failed");
    if (ctl->format == CTL_TEXT) {
        ctl_say(stdout, answer, "scanned; the scheduler has report {digest}");
        if (failed > 0)
            printf("; %lld probe%s failed, see fabricctl status", (long long)failed, failed == 1 ? "" : "s");
        putchar('\n');
        return CTL_DONE;
    }
    if (ctl->format == CTL_CSV)
        return ctl_changes_table(ctl, NULL);
    return ctl_json_print(stdout,
                          json_pack("{s:O*, s:O*, s:O*}", "generation", json_object_get(answer, "generation"),
                                    "digest", json_object_get(answer, "digest"), "probes_failed",
                                    json_object_get(answer, "probes_failed")));
}

/* Show the answer to a request that is accepted, without a wait for the sweep. */
static enum ctl_exit show_taken(const struct ctl *ctl, const json_t *answer)
{
    if (ctl->format == CTL_TEXT) {
        ctl_say(stdout, answer, "accepted; generation {generation} is served now\n");
        return CTL_DONE;
    }
    if (ctl->format == CTL_CSV)
        return ctl_changes_table(ctl, NULL);
    return ctl_json_print(
        stdout, json_pack("{s:b, s:O}", "taken", 1, "generation", json_object_get(answer, "generation")));
}

/*
 * Request the changes of the refresh for all hosts, or for one host. The daemon resolves the name, since it
 * finds hosts with and without their domain. "Nothing changed" would be wrong for a host that does not exist.
 */
static enum ctl_exit ask_changes(const struct ctl *ctl, const json_t *answer, json_t **diff)
{
    json_int_t generation = ctl_number_of(answer, "generation");
    bool changed = ctl_is(answer, "changed");
    json_t *request = json_pack("{s:s, s:I, s:I, s:s*}", "op", "diff", "from", generation - changed, "to",
                                generation, "host", ctl->host);
    enum ctl_exit status = ctl_ask(ctl, request, CTL_ANSWER_SECONDS, diff);
    char hint[CTL_SUGGESTION];
    if (status != CTL_DONE)
        return status;
    if (json_is_false(json_object_get(*diff, "known")) &&
        json_array_size(json_object_get(*diff, "changes")) == 0)
        return ctl_error(
            "no host %s: not in the fabric as swept now: check the name, its cable, and that it is up%s",
            ctl->host, ctl_suggest(ctl, ctl->host, CTL_HOSTS, hint));
    return CTL_DONE;
}

/*
 * Return the number of changes if none is about the requested host or switch. Return 0 if no host or switch
 * was requested, or if there are changes about it.
 */
static size_t count_others(const struct ctl *ctl, const json_t *answer, const json_t *diff,
                           const json_t *changes)
{
    json_t *all = NULL;
    struct ctl anybody = *ctl;
    size_t n = json_array_size(json_object_get(diff, "changes"));
    if (ctl->format != CTL_TEXT || json_array_size(changes) > 0 || (ctl->host == NULL && ctl->sw == NULL) ||
        !ctl_is(answer, "changed"))
        return 0;
    anybody.host = NULL;
    if (ctl->host == NULL)
        return n;
    if (ask_changes(&anybody, answer, &all) == CTL_DONE)
        n = json_array_size(json_object_get(all, "changes"));
    json_decref(all);
    return n;
}

static enum ctl_exit refresh_show(const struct ctl *ctl, const json_t *answer)
{
    json_t *diff = NULL, *changes;
    enum ctl_exit status = CTL_DONE;
    if (json_object_get(answer, "digest") != NULL)
        return show_scanned(ctl, answer);
    if (json_object_get(answer, "taken") != NULL)
        return show_taken(ctl, answer);
    if (ctl->host != NULL || ctl_is(answer, "changed"))
        status = ask_changes(ctl, answer, &diff);
    changes = changes_filter(ctl, json_object_get(diff, "changes"));
    if (status == CTL_DONE)
        status = changes == NULL
                     ? CTL_FAILED
                     : show_refresh(ctl, answer, changes, count_others(ctl, answer, diff, changes));
    json_decref(changes);
    json_decref(diff);
    return status;
}

/* Refresh. With `host` the daemon requests a scan from that node first. */
enum ctl_exit ctl_refresh(const struct ctl *ctl)
{
    if (ctl->host != NULL && ctl->sw != NULL)
        return ctl_usage("one or the other: --host and --switch: refresh twice for both");
    if (ctl->wait && ctl->no_wait)
        return ctl_usage("one or the other: --wait and --no-wait: without both it waits");
    return ctl_ask_show(ctl,
                        json_pack("{s:s, s:b, s:s*, s:s*, s:o*, s:o*}", "op", "refresh", "accept_partial",
                                  ctl->accept_partial, "host", ctl->host, "switch", ctl->sw, "release",
                                  ctl->release ? json_true() : NULL, "wait",
                                  ctl->no_wait ? json_false() : NULL),
                        CTL_SWEEP_SECONDS, refresh_show);
}

/* ---- comparison of the fabric with the served state ---- */

static enum ctl_exit show_verified(const struct ctl *ctl, const json_t *answer)
{
    const json_t *changes = json_object_get(answer, "changes");
    const bool equal = ctl_is(answer, "equal");
    enum ctl_exit status = CTL_DONE;
    json_t *rows;
    if (ctl->format == CTL_TEXT)
        ctl_say(stdout, answer,
                equal ? "generation {generation} equals the fabric as swept now\n"
                      : "generation {generation} differs from the fabric as swept now:\n");
    if (ctl->format == CTL_JSON) {
        rows = ctl_changes_json(ctl, changes);
        if (rows == NULL)
            return CTL_FAILED;
        status = ctl_json_print(
            stdout,
            json_pack("{s:O, s:b, s:o, s:O?, s:O?}", "generation", json_object_get(answer, "generation"),
                      "equal", equal, "changes", rows, "suppressed", json_object_get(answer, "suppressed"),
                      "suppressed_switches", json_object_get(answer, "suppressed_switches")));
    } else if (!equal || ctl->format == CTL_CSV) {
        status = ctl_changes_table(ctl, changes);
    }
    if (ctl->format == CTL_TEXT)
        print_suppressed(answer);
    return status == CTL_DONE && !equal ? CTL_FAILED : status;
}

enum ctl_exit ctl_verify(const struct ctl *ctl)
{
    return ctl_ask_show(ctl, json_pack("{s:s}", "op", "verify"), CTL_SWEEP_SECONDS, show_verified);
}

/* ---- announced swaps ---- */

static const struct ctl_column expected_columns[] = {
    {"name", "NAME", false},
    {"since", "SINCE", false},
    {"until", "UNTIL", false},
    {"uid", "UID", true},
};

static enum ctl_exit show_expected(const struct ctl *ctl, const json_t *answer)
{
    const json_t *expected = json_object_get(answer, "expected");
    if (ctl->format == CTL_TEXT && ctl->cancel) {
        printf("the announcement of %s is withdrawn\n", ctl->args[0]);
        return CTL_DONE;
    }
    if (ctl->format == CTL_TEXT && json_array_size(expected) == 0) {
        puts("no swap is announced");
        return CTL_DONE;
    }
    return ctl_rows_table(ctl, expected_columns, CTL_COUNT(expected_columns), expected, NULL);
}

enum ctl_exit ctl_expect(const struct ctl *ctl)
{
    if (ctl->replace && ctl->cancel)
        return ctl_usage("one or the other: --replace and --cancel");
    if (ctl->n_args == 0 && (ctl->replace || ctl->cancel))
        return ctl_usage("no name: expect %s: give a host or a switch",
                         ctl->replace ? "--replace" : "--cancel");
    if (ctl->seconds > 0 && !ctl->replace)
        return ctl_usage("no swap to announce: --for: give --replace, too");
    return ctl_ask_show(ctl,
                        json_pack("{s:s, s:b, s:b, s:o*, s:s*}", "op", "expect", "replace", ctl->replace,
                                  "cancel", ctl->cancel, "seconds",
                                  ctl->seconds > 0 ? json_integer(ctl->seconds) : NULL, "name",
                                  ctl->n_args > 0 ? ctl->args[0] : NULL),
                        CTL_ANSWER_SECONDS, show_expected);
}
