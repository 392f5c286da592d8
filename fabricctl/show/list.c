/* list.c - parts of all lists: names on the command line and their matches, labels, facts, LIDs. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/show/show.h"

/* ---- the names on the command line, and their matches ---- */

static const char *guid_text(uint64_t guid, char text[24])
{
    snprintf(text, 24, "0x%016" PRIx64, guid);
    return text;
}

static bool wants(const struct ctl *ctl, const char *const *names, size_t n, const char *host)
{
    bool any = ctl->n_args == 0;
    for (int i = 0; i < ctl->n_args; i++) {
        bool is = host != NULL && ctl_same_host(ctl->args[i], host);
        for (size_t k = 0; k < n && !is; k++)
            is = strcmp(ctl->args[i], names[k]) == 0;
        if (is)
            ctl->met[i] = true;
        any |= is;
    }
    return any;
}

void ctl_device_label(const struct pmixfab_device *device, bool with_port, char *buf, size_t size)
{
    if (with_port)
        snprintf(buf, size, "%s:%s:%u", device->host, device->name, device->port);
    else
        snprintf(buf, size, "%s:%s", device->host, device->name);
}

/* Format "NAME (0x...)". A name that is too long for the buffer is cut, the GUID is not. */
static const char *name_with_guid(const char *name, uint64_t guid, char buf[static CTL_SHOWN_SIZE])
{
    snprintf(buf, CTL_SHOWN_SIZE, "%.*s (0x%016" PRIx64 ")", CTL_SHOWN_SIZE - 22, name, guid);
    return buf;
}

const char *ctl_rail_name(uint32_t rail, char name[CTL_RAIL_SIZE])
{
    snprintf(name, CTL_RAIL_SIZE, "rail%" PRIu32, rail);
    return name;
}

bool ctl_wants_switch(const struct ctl *ctl, const struct pmixfab_switch *sw)
{
    char both[CTL_SHOWN_SIZE];
    name_with_guid(sw->name, sw->guid, both);
    return wants(ctl, (const char *const[]){sw->name, sw->id, both}, 3, NULL);
}

bool ctl_wants_device(const struct ctl *ctl, const struct pmixfab_device *device)
{
    char label[CTL_LABEL_SIZE], full[CTL_LABEL_SIZE], guids[3][24];
    ctl_device_label(device, false, label, sizeof label);
    ctl_device_label(device, true, full, sizeof full);
    return wants(ctl,
                 (const char *const[]){label, full, device->id, guid_text(device->node_guid, guids[0]),
                                       guid_text(device->port_guid, guids[1]),
                                       guid_text(device->system_guid, guids[2])},
                 6, device->host);
}

bool ctl_wants_name(const struct ctl *ctl, const char *name)
{
    return wants(ctl, &name, 1, name);
}

bool ctl_same_host(const char *a, const char *b)
{
    size_t n = strcspn(a, "."), m = strcspn(b, ".");
    return strcmp(a, b) == 0 || (n == m && memcmp(a, b, n) == 0 && (a[n] == '\0' || b[m] == '\0'));
}

unsigned ctl_names_of(const char *command)
{
    static const struct {
        const char *command;
        unsigned kinds;
    } known[] = {{"switches", CTL_SWITCHES},
                 {"devices", CTL_HOSTS | CTL_DEVICES},
                 {"coords", CTL_HOSTS | CTL_DEVICES},
                 {"cost", CTL_HOSTS | CTL_DEVICES},
                 {"where", CTL_HOSTS},
                 {"nodes", CTL_HOSTS},
                 {"groups", CTL_GROUPS | CTL_HOSTS | CTL_SWITCHES},
                 {"rails", CTL_RAILS},
                 {"show", CTL_HOSTS | CTL_SWITCHES | CTL_GROUPS | CTL_RAILS | CTL_PLANES},
                 {"links", CTL_HOSTS | CTL_SWITCHES},
                 {"counters", CTL_HOSTS | CTL_SWITCHES},
                 {"expect", CTL_HOSTS | CTL_SWITCHES},
                 {"forget", CTL_HOSTS | CTL_SWITCHES},
                 {"history", CTL_HOSTS | CTL_SWITCHES},
                 {"ack", CTL_HOSTS | CTL_SWITCHES}};
    for (size_t i = 0; i < CTL_COUNT(known); i++)
        if (strcmp(known[i].command, command) == 0)
            return known[i].kinds;
    return 0;
}

enum ctl_exit ctl_wanted_met(const struct ctl *ctl, const char *kind, const char *command)
{
    enum ctl_exit status = CTL_DONE;
    char hint[CTL_SUGGESTION];
    for (int i = 0; i < ctl->n_args; i++)
        if (!ctl->met[i])
            status = ctl_error("no %s %s: %s: `fabricctl %s` lists all%s", kind, ctl->args[i],
                               ctl_source_location(ctl), command,
                               ctl_suggest(ctl, ctl->args[i], ctl_names_of(command), hint));
    return status;
}

/* ---- names that several switches or devices have, and their labels ---- */

/* Note a name. Its value is the GUID of the first object with it, or null if another one has it, too. */
static void labels_note(json_t *names, json_t *shared, const char *name, uint64_t guid)
{
    const json_t *first = json_object_get(names, name);
    if (first == NULL)
        json_object_set_new(names, name, json_integer((json_int_t)guid));
    else if (json_integer_value(first) != (json_int_t)guid)
        json_object_set_new(shared, name, json_true());
}

json_t *ctl_shared_names(const struct ctl_view *view)
{
    json_t *names = json_object(), *shared = json_object();
    char label[CTL_LABEL_SIZE];
    for (size_t i = 0; i < view->n; i++) {
        struct pmixfab_switch sw;
        struct pmixfab_device device;
        for (uint32_t s = 0; pmixfab_switch(view->planes[i], s, &sw) == 0; s++)
            labels_note(names, shared, sw.name, sw.guid);
        for (uint32_t d = 0; pmixfab_device(view->planes[i], d, &device) == 0; d++) {
            ctl_device_label(&device, false, label, sizeof label);
            labels_note(names, shared, label, device.node_guid);
        }
    }
    json_decref(names);
    return shared;
}

const char *ctl_name_shown(const json_t *shared, const char *name, uint64_t guid,
                           char buf[static CTL_SHOWN_SIZE])
{
    return json_object_get(shared, name) == NULL ? name : name_with_guid(name, guid, buf);
}

bool ctl_group_leaf(const struct pmixfab *fab, uint32_t g, struct pmixfab_switch *sw)
{
    const char *name = pmixfab_group_name(fab, g);
    uint32_t index;
    return name != NULL && pmixfab_group_switch(fab, g, &index) == 0 && index != UINT32_MAX &&
           pmixfab_switch(fab, index, sw) == 0 && strcmp(sw->name, name) == 0;
}

const char *ctl_group_shown(const json_t *shared, const struct pmixfab *fab, uint32_t g,
                            char buf[static CTL_SHOWN_SIZE])
{
    struct pmixfab_switch sw;
    return ctl_group_leaf(fab, g, &sw) ? ctl_name_shown(shared, sw.name, sw.guid, buf)
                                       : pmixfab_group_name(fab, g);
}

/* ---- facts of ports that only the daemon has ---- */

#define PORTS_SECONDS 10

/*
 * Return the nodes by GUID. NULL: they are not available (over PMIx, in exports, or without a daemon). This
 * is not a failure.
 */
static const json_t *ports_nodes(const struct ctl *ctl)
{
    struct ctl_ports *ports = ctl->ports;
    char why[CTL_WHY_SIZE];
    if (!ports->asked && ctl->uri == NULL && !ctl->snapshots_only)
        ctl_control_ask(ctl->rundir, json_pack("{s:s}", "op", "ports"), PORTS_SECONDS, &ports->answer, why);
    ports->asked = true;
    return json_object_get(ports->answer, "nodes");
}

static const json_t *ports_node(const struct ctl *ctl, uint64_t guid)
{
    char key[24];
    return json_object_get(ports_nodes(ctl), guid_text(guid, key));
}

/* [number, LID, "4xHDR"] */
static const json_t *ports_port(const struct ctl *ctl, uint64_t guid, uint32_t port)
{
    const json_t *ports = json_object_get(ports_node(ctl, guid), "ports"), *one;
    size_t i;
    json_array_foreach(ports, i, one)
    {
        if (json_integer_value(json_array_get(one, 0)) == (json_int_t)port)
            return one;
    }
    return NULL;
}

void ctl_put_lid(struct ctl_table *table, const struct ctl *ctl, uint64_t guid, uint32_t port)
{
    const json_t *lid = port == 0 ? json_object_get(ports_node(ctl, guid), "lid")
                                  : json_array_get(ports_port(ctl, guid, port), 1);
    if (json_integer_value(lid) > 0)
        ctl_put_number(table, json_integer_value(lid));
    else
        ctl_put_null(table);
}

void ctl_put_width(struct ctl_table *table, const struct ctl *ctl, uint64_t guid, uint32_t port)
{
    ctl_put_text(table, json_string_value(json_array_get(ports_port(ctl, guid, port), 2)));
}

/* ---- facts of a device, for programs and for people ---- */

#define LINE 1024

/* ---- for programs ---- */

static json_t *fact_sources_json(const struct pmixfab_fact *fact)
{
    json_t *sources = json_array();
    const char *name;
    for (uint32_t i = 0; (name = pmixfab_source_name(i)) != NULL; i++)
        if ((fact->sources >> i & 1) != 0)
            json_array_append_new(sources, json_string(name));
    return sources;
}

json_t *ctl_facts_json(const struct pmixfab *fab, uint32_t device)
{
    json_t *facts = json_array();
    struct pmixfab_fact fact;
    for (uint32_t i = 0; facts != NULL && pmixfab_fact(fab, device, i, &fact) == PMIXFAB_OK; i++) {
        json_t *one = json_pack(
            "{s:s, s:o, s:o, s:b, s:b, s:b, s:b, s:b}", "kind", fact.kind, "text", ctl_json_text(fact.text),
            "sources", fact_sources_json(&fact), "chosen", (int)fact.chosen, "conflict", (int)fact.conflict,
            "estimate", (int)fact.estimate, "software", (int)fact.software, "yielded", (int)fact.yielded);
        if (json_array_append_new(facts, one) != 0) {
            json_decref(facts);
            facts = NULL;
        }
    }
    return facts;
}

/* ---- for people ---- */

static void add_sources(FILE *line, uint32_t sources)
{
    const char *between = "", *name;
    for (uint32_t i = 0; (name = pmixfab_source_name(i)) != NULL; i++)
        if ((sources >> i & 1) != 0) {
            fprintf(line, "%s%s", between, name);
            between = ", ";
        }
}

/*
 * Write remarks on a chosen fact, and the other facts of its kind, for example "estimate; ucx: 2048". The
 * other facts follow the first chosen fact.
 */
static void fact_remark(FILE *line, const struct pmixfab *fab, uint32_t device, uint32_t at,
                        const struct pmixfab_fact *fact, bool first)
{
    const char *const said[] = {fact->estimate ? "estimate" : NULL, fact->software ? "software" : NULL,
                                fact->yielded ? "another host's" : NULL};
    const char *between = "";
    struct pmixfab_fact other;
    for (size_t i = 0; i < CTL_COUNT(said); i++)
        if (said[i] != NULL) {
            fprintf(line, "%s%s", between, said[i]);
            between = "; ";
        }
    for (uint32_t i = at + 1; first && pmixfab_fact(fab, device, i, &other) == PMIXFAB_OK; i++) {
        if (strcmp(other.kind, fact->kind) != 0)
            break;
        if (other.chosen)
            continue;
        fputs(between, line);
        add_sources(line, other.sources);
        fprintf(line, ": %s", other.text);
        between = "; ";
    }
    if (fact->conflict && first && between[0] == '\0')
        fputs("contradicted", line);
}

/* Return the bytes of the widest text that keeps the lines short enough. */
static int fact_max_width(const struct pmixfab *fab, uint32_t device)
{
    struct pmixfab_fact fact;
    size_t width = 0;
    for (uint32_t i = 0; pmixfab_fact(fab, device, i, &fact) == PMIXFAB_OK; i++) {
        size_t len = strlen(fact.text);
        if (fact.chosen && len > width && len <= 40)
            width = len;
    }
    return (int)width;
}

static void print_fact(const struct pmixfab *fab, uint32_t device, uint32_t at,
                       const struct pmixfab_fact *fact, bool first, int width)
{
    char sources[LINE] = "", said[LINE] = "", text[LINE];
    FILE *line = fmemopen(sources, sizeof sources - 1, "w"), *remark = fmemopen(said, sizeof said - 1, "w");
    if (line != NULL)
        add_sources(line, fact->sources);
    if (remark != NULL)
        fact_remark(remark, fab, device, at, fact, first);
    if (line != NULL)
        fclose(line);
    if (remark != NULL)
        fclose(remark);
    snprintf(text, sizeof text, "%s", fact->text);
    ctl_clean(text);
    ctl_clean(said);
    printf("  %-12s %-*s  ", first ? fact->kind : "", width, text);
    if (said[0] != '\0')
        printf("%-17s (%s)\n", sources, said);
    else
        printf("%s\n", sources);
}

void ctl_facts_print(const struct pmixfab *fab, const char *plane, uint32_t device)
{
    struct pmixfab_device about;
    struct pmixfab_fact fact;
    char line[LINE], label[CTL_LABEL_SIZE];
    const char *kind = "";
    int width = fact_max_width(fab, device);
    if (pmixfab_device(fab, device, &about) != PMIXFAB_OK ||
        pmixfab_fact(fab, device, 0, &fact) != PMIXFAB_OK)
        return;
    ctl_device_label(&about, true, label, sizeof label);
    snprintf(line, sizeof line, "%s, plane %s, %s", label, plane, about.id);
    ctl_clean(line);
    printf("\n%s\n", line);
    for (uint32_t i = 0; pmixfab_fact(fab, device, i, &fact) == PMIXFAB_OK; i++) {
        if (!fact.chosen)
            continue;
        print_fact(fab, device, i, &fact, strcmp(kind, fact.kind) != 0, width);
        kind = fact.kind;
    }
}

/* ---- lists of the contents of planes, and of the planes themselves ---- */

enum ctl_exit ctl_list_view(struct ctl_table *table, const struct ctl *ctl, const struct ctl_view *view,
                            ctl_list_fn *list)
{
    struct pmixfab_plane plane = {.name = "(unreadable)"};
    enum ctl_exit status;
    bool complete = true;
    if (ctl->format == CTL_TEXT && ctl->ports->shared == NULL) /* programs have GUIDs beside the names */
        ctl->ports->shared = ctl_shared_names(view);
    for (size_t i = 0; table != NULL && complete && i < view->n; i++)
        complete = pmixfab_plane(view->planes[i], &plane) == 0 && list(table, ctl, view->planes[i], &plane);
    status = ctl_table_close(table);
    if (status == CTL_DONE && !complete && !ferror(stdout))
        status = ctl_error(
            "the answer is incomplete: plane %s: its snapshot contradicts itself, or memory ran out",
            plane.name);
    return status;
}

const char *ctl_find_host(const struct ctl *ctl, const struct ctl_view *view, const char *asked)
{
    const char *found = NULL, *name;
    uint32_t first, n;
    bool several = false;
    char hint[CTL_SUGGESTION];
    for (size_t i = 0; i < view->n; i++) {
        for (uint32_t h = 0; pmixfab_host(view->planes[i], h, &name, &first, &n) == 0; h++) {
            if (strcmp(name, asked) == 0)
                return name;
            if (!ctl_same_host(name, asked))
                continue;
            several |= found != NULL && strcmp(found, name) != 0;
            found = name;
        }
    }
    if (several)
        ctl_error("%s can be several hosts: give the whole name, as `fabricctl groups` shows it", asked);
    else if (found == NULL)
        ctl_error("no host %s: %s: `fabricctl groups` lists the hosts%s", asked, ctl_source_location(ctl),
                  ctl_suggest(ctl, asked, CTL_HOSTS, hint));
    return several ? NULL : found;
}
