/* show.c - a host, a device, a switch, a GUID, a plane, a rail, a group or a cable, by its name alone. */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/show/show.h"

#define SHOWN_CHANGES 10

/* Kinds of objects with the name, bits. */
enum { IS_PLANE = 1, IS_SWITCH = 2, IS_HOST = 4, IS_DEVICE = 8, IS_RAIL = 16, IS_GROUP = 32 };

/* Return the kinds of one plane. */
static unsigned named_in_plane(const struct ctl *ctl, const struct pmixfab *fab)
{
    struct pmixfab_plane plane;
    struct pmixfab_switch sw;
    struct pmixfab_device device;
    unsigned is = 0;
    char number[CTL_RAIL_SIZE];
    if (pmixfab_plane(fab, &plane) != 0)
        return 0;
    if (strcmp(plane.name, ctl->args[0]) == 0)
        is |= IS_PLANE;
    for (uint32_t i = 0; i < plane.n_switches; i++) {
        if (pmixfab_switch(fab, i, &sw) != 0)
            continue;
        if (ctl_wants_switch(ctl, &sw))
            is |= IS_SWITCH;
        if (sw.rail != UINT32_MAX && strcmp(ctl->args[0], ctl_rail_name(sw.rail, number)) == 0)
            is |= IS_RAIL;
    }
    for (uint32_t i = 0; i < plane.n_devices; i++)
        if (pmixfab_device(fab, i, &device) == 0 && ctl_wants_device(ctl, &device))
            is |= ctl_same_host(ctl->args[0], device.host) ? IS_HOST : IS_DEVICE;
    for (uint32_t g = 0; g < plane.n_groups; g++) {
        const char *name = pmixfab_group_name(fab, g);
        snprintf(number, sizeof number, "%u", (unsigned)g);
        if (strcmp(ctl->args[0], number) == 0 || (name != NULL && strcmp(ctl->args[0], name) == 0))
            is |= IS_GROUP;
    }
    return is;
}

static unsigned named_in(const struct ctl *ctl, const struct ctl_view *view)
{
    unsigned is = 0;
    for (size_t i = 0; i < view->n; i++)
        is |= named_in_plane(ctl, view->planes[i]);
    return is;
}

/*
 * Return the name and the port of "leaf1[3]", or of a cable "leaf1[3] - node1 HCA-1[1]" by its first end.
 * NULL: it is neither.
 */
static char *cable_end(const char *name, uint32_t *port)
{
    const char *bracket = strchr(name, '[');
    char *end = bracket == NULL || bracket == name ? NULL : strndup(name, (size_t)(bracket - name));
    if (end != NULL)
        *port = (uint32_t)strtoul(bracket + 1, NULL, 10);
    return end;
}

/*
 * Return the daemon's answer, a new reference. NULL: there is no answer, and the served state is shown
 * without it.
 */
static json_t *latest_changes(const struct ctl *ctl)
{
    json_t *answer;
    char why[CTL_WHY_SIZE];
    if (ctl->uri != NULL || ctl_control_ask(ctl->rundir,
                                            json_pack("{s:s, s:s, s:i}", "op", "history", "what",
                                                      ctl->args[0], "limit", SHOWN_CHANGES),
                                            CTL_ANSWER_SECONDS, &answer, why) != CTL_DONE)
        return NULL;
    return answer;
}

static enum ctl_exit show_changes(const struct ctl *ctl)
{
    json_t *answer = latest_changes(ctl);
    enum ctl_exit status = CTL_DONE;
    if (json_array_size(json_object_get(answer, "changes")) > 0) {
        puts("\nlatest changes:");
        status = ctl_changes_table(ctl, json_object_get(answer, "changes"));
    }
    json_decref(answer);
    return status;
}

/* Return whether a change is about a host or switch of exactly this name. */
static bool is_subject(const json_t *changes, const char *name)
{
    for (size_t i = 0; i < json_array_size(changes); i++) {
        const json_t *subjects = json_object_get(json_array_get(changes, i), "subjects");
        for (size_t k = 0; k < json_array_size(subjects); k++) {
            const char *subject = json_string_value(json_array_get(subjects, k));
            if (subject != NULL && ctl_same_host(name, subject))
                return true;
        }
    }
    return false;
}

/* Show a name without a served object: changes of a lost object with this name matter most at night. */
static enum ctl_exit show_gone(const struct ctl *ctl)
{
    json_t *answer = ctl->format == CTL_TEXT ? latest_changes(ctl) : NULL;
    char hint[CTL_SUGGESTION];
    enum ctl_exit status;
    if (is_subject(json_object_get(answer, "changes"), ctl->args[0])) {
        printf("%s is not in the fabric now; `fabricctl check` shows whether fabricd waits for it\n\nlatest "
               "changes:\n",
               ctl->args[0]);
        status = ctl_changes_table(ctl, json_object_get(answer, "changes"));
    } else {
        status = ctl_error("no such name: %s: %s: give a host, a device (host:device), a switch, a GUID, a "
                           "plane, a rail (rail2), a group (by name or number) or a cable (leaf1[3])%s",
                           ctl->args[0], ctl_source_location(ctl),
                           ctl_suggest(ctl, ctl->args[0], ctl_names_of("show"), hint));
    }
    json_decref(answer);
    return status;
}

/*
 * Sections of the answer; programs get only the first one. The first matching kind counts. The section of a
 * host is the command `devices`, whose list is of a host.
 */
static const struct {
    unsigned is;
    bool changes; /* with the latest changes */
    struct {
        const char *head, *list; /* list NULL: of a host's devices */
    } sections[3];
} shown[] = {
    {IS_SWITCH, true, {{"switch", "switches"}, {"\ncables", "links"}}},
    {IS_HOST, true, {{"host", NULL}, {"\ncables", "links"}, {"\ngroups", "groups"}}},
    {IS_DEVICE, true, {{"device", "devices"}, {"\ncable", "links"}}},
    {IS_PLANE, false, {{"plane", "planes"}}},
    {IS_RAIL, false, {{"rail", "rails"}}},
    {IS_GROUP, false, {{"group", "groups"}}},
};

static enum ctl_exit show_section(const struct ctl *ctl, const char *head, const char *list)
{
    if (ctl->format == CTL_TEXT)
        printf("%s:\n", head);
    return list != NULL ? ctl_list_named(ctl, list) : ctl_devices(ctl);
}

/* Show the cables at one end, in one port; and the changes there. */
static enum ctl_exit show_cables(const struct ctl *ctl, const struct ctl *end)
{
    enum ctl_exit status = show_section(end, "cables", "links");
    return status == CTL_DONE && ctl->format == CTL_TEXT ? show_changes(ctl) : status;
}

static enum ctl_exit show_named(const struct ctl *ctl, unsigned is)
{
    const bool text = ctl->format == CTL_TEXT;
    struct ctl asked = *ctl;
    enum ctl_exit status = CTL_DONE;
    size_t at = 0;
    while ((shown[at].is & is) == 0)
        at++;
    if (shown[at].is == IS_PLANE) {
        asked.plane = ctl->args[0];
        asked.n_args = 0;
    }
    for (size_t i = 0; status == CTL_DONE && i < (text ? CTL_COUNT(shown[at].sections) : 1) &&
                       shown[at].sections[i].head != NULL;
         i++)
        status = show_section(&asked, shown[at].sections[i].head, shown[at].sections[i].list);
    return status == CTL_DONE && text && shown[at].changes ? show_changes(ctl) : status;
}

enum ctl_exit ctl_show(const struct ctl *ctl)
{
    struct ctl_view view;
    struct ctl asked = *ctl;
    enum ctl_exit status = ctl_view_all(ctl, &view);
    char *end = cable_end(ctl->args[0], &asked.port);
    unsigned is = 0;
    if (status != CTL_DONE) {
        free(end);
        return status;
    }
    if (end != NULL)
        asked.args = &end;
    is = named_in(&asked, &view);
    if (is == 0 && end != NULL && strchr(end, ' ') != NULL) { /* "node1 HCA-1" means "node1:HCA-1" here */
        *strchr(end, ' ') = ':';
        is = named_in(&asked, &view);
    }
    ctl_view_close(&view);
    if (is == 0)
        status = show_gone(ctl);
    else if (end != NULL)
        status = show_cables(ctl, &asked);
    else
        status = show_named(&asked, is);
    free(end);
    return status;
}
