/* lldp_read.c - neighbours in the output of `lldpctl -f json0`. Whoever is on the cable wrote them. */
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/facts.h"
#include "probes/core/record.h"
#include "probes/lldp/lldp.h"

#define MAX_INTERFACES 1024

/* Who is heard on an interface; texts of the JSON. */
struct neighbour {
    const char *interface;
    const json_t *chassis, *port;
    bool lldp;    /* and not one of the older protocols that lldpd knows */
    size_t place; /* in the list as it came */
};

/* In json0 each thing is an array of its kind, mostly of one. */
static const json_t *lldp_first(const json_t *of, const char *key)
{
    return json_array_get(json_object_get(of, key), 0);
}

static const char *lldp_text(const json_t *of, const char *key)
{
    const char *value = json_string_value(json_object_get(of, key));
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* An element's own text: {"value": "leaf1"}. */
static const char *lldp_value(const json_t *of, const char *key)
{
    return lldp_text(lldp_first(of, key), "value");
}

/* A switch bridges or routes; what does not say what it does may be one. */
static bool lldp_is_switch(const json_t *chassis)
{
    const json_t *capabilities = json_object_get(chassis, "capability"), *capability;
    size_t i;
    bool said = false;
    json_array_foreach(capabilities, i, capability)
    {
        const char *type = lldp_text(capability, "type");
        if (type == NULL)
            continue;
        said = true;
        if ((strcmp(type, "Bridge") == 0 || strcmp(type, "Router") == 0) &&
            json_is_true(json_object_get(capability, "enabled")))
            return true;
    }
    return !said;
}

/* An id in the form of its kind: a MAC in lower case, or "ifname Ethernet12". False: it has none. */
static bool id_text(const json_t *of, bool with_type, char *out, size_t size)
{
    const json_t *id = lldp_first(of, "id");
    const char *type = lldp_text(id, "type"), *name = lldp_text(id, "value");
    if (type == NULL || name == NULL)
        return false;
    bool mac = strcmp(type, "mac") == 0;
    snprintf(out, size, "%.*s%s%.*s", with_type && !mac ? 32 : 0, type, with_type && !mac ? " " : "",
             FAB_REPORT_MAX_TEXT, name);
    for (char *p = out; mac && *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    return true;
}

/* False: nobody that could be a switch. */
static bool read_neighbour(const json_t *entry, const struct probe_sink *sink, struct neighbour *out)
{
    char id[FAB_REPORT_MAX_TEXT + 64];
    const char *via = lldp_text(entry, "via");
    *out = (struct neighbour){
        .interface = lldp_text(entry, "name"),
        .chassis = lldp_first(entry, "chassis"),
        .port = lldp_first(entry, "port"),
        .lldp = via != NULL && strcmp(via, "LLDP") == 0,
    };
    if (out->interface == NULL || fab_fact_check(FAB_FACT_INTERFACE, out->interface, NULL) != PMIXFAB_OK) {
        probe_note(sink, PMIXFAB_LOG_WARNING, "lldp: a neighbour of no interface is left out");
        return false;
    }
    if (!id_text(out->chassis, true, id, sizeof(id)) ||
        fab_fact_check(FAB_FACT_SWITCH_ID, id, NULL) != PMIXFAB_OK) {
        probe_note(sink, PMIXFAB_LOG_WARNING, "lldp: %s: a neighbour without a chassis id is left out",
                   out->interface);
        return false;
    }
    if (!lldp_is_switch(out->chassis)) {
        probe_note(sink, PMIXFAB_LOG_DEBUG, "lldp: %s: the neighbour is no switch", out->interface);
        return false;
    }
    return true;
}

static int add_neighbour(const struct neighbour *n, struct fab_report *report)
{
    char id[FAB_REPORT_MAX_TEXT + 64];
    uint32_t item;
    int rc = fab_report_item(report, FAB_FROM_LLDP, &item);
    if (rc == PMIXFAB_OK)
        rc = fact_add(report, item, FAB_FACT_INTERFACE, n->interface);
    if (rc == PMIXFAB_OK && id_text(n->chassis, true, id, sizeof(id)))
        rc = fact_add(report, item, FAB_FACT_SWITCH_ID, id);
    if (rc == PMIXFAB_OK)
        rc = fact_add(report, item, FAB_FACT_SWITCH_NAME, lldp_value(n->chassis, "name"));
    if (rc == PMIXFAB_OK && id_text(n->port, false, id, sizeof(id)))
        rc = fact_add(report, item, FAB_FACT_SWITCH_PORT, id);
    return rc;
}

/* By interface; LLDP before what else lldpd heard, which may be the same switch once more. */
static int by_interface(const void *a, const void *b)
{
    const struct neighbour *x = a, *y = b;
    int order = strcmp(x->interface, y->interface);
    if (order == 0)
        order = (int)y->lldp - (int)x->lldp;
    return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

static bool same_switch(const struct neighbour *a, const struct neighbour *b)
{
    char x[FAB_REPORT_MAX_TEXT + 64], y[FAB_REPORT_MAX_TEXT + 64];
    return id_text(a->chassis, true, x, sizeof(x)) && id_text(b->chassis, true, y, sizeof(y)) &&
           strcmp(x, y) == 0;
}

static int add_all(struct neighbour *list, size_t n, const struct probe_sink *sink, struct fab_report *report)
{
    int rc = PMIXFAB_OK;
    qsort(list, n, sizeof(*list), by_interface);
    for (size_t i = 0, next; i < n && rc == PMIXFAB_OK; i = next) {
        bool several = false;
        for (next = i + 1; next < n && strcmp(list[next].interface, list[i].interface) == 0; next++)
            several = several || (list[next].lldp == list[i].lldp && !same_switch(&list[next], &list[i]));
        if (several)
            probe_note(sink, PMIXFAB_LOG_WARNING,
                       "lldp: %s hears several switches; none of them is taken for its own",
                       list[i].interface);
        else
            rc = add_neighbour(&list[i], report);
    }
    return rc;
}

static int lldp_collect(const json_t *root, const struct probe_sink *sink, struct neighbour **list, size_t *n)
{
    const json_t *part, *entry, *parts = json_object_get(root, "lldp");
    size_t i, k, total = 0;
    json_array_foreach(parts, i, part) total += json_array_size(json_object_get(part, "interface"));
    *n = 0;
    *list = calloc(total > 0 ? total : 1, sizeof(**list));
    if (*list == NULL)
        return PMIXFAB_ERR_NOMEM;
    json_array_foreach(parts, i, part)
    {
        const json_t *interfaces = json_object_get(part, "interface");
        json_array_foreach(interfaces, k, entry)
        {
            if (!read_neighbour(entry, sink, &(*list)[*n]))
                continue;
            (*list)[*n].place = *n;
            ++*n;
        }
    }
    return *n > MAX_INTERFACES ? PMIXFAB_ERR_RANGE : PMIXFAB_OK;
}

static int read_neighbours(const json_t *root, const char *name, const struct probe_sink *sink,
                           struct fab_report *report, struct fab_err *err)
{
    struct neighbour *list = NULL;
    size_t n = 0;
    if (!json_is_array(json_object_get(root, "lldp")))
        return fab_fail(err, PMIXFAB_ERR_SYNTAX,
                        "%s: \"lldp\" is no array; record it with `lldpctl -f json0`", name);
    int rc = lldp_collect(root, sink, &list, &n);
    if (rc == PMIXFAB_OK)
        rc = add_all(list, n, sink, report);
    free(list);
    if (rc == PMIXFAB_ERR_RANGE)
        return fab_fail(err, rc, "%s: more than %d neighbours", name, MAX_INTERFACES);
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "%s: %s", name, pmixfab_strerror(rc));
}

int lldp_read(const char *bytes, size_t size, const char *name, const struct probe_sink *sink,
              struct fab_report *report, struct fab_err *err)
{
    json_error_t at;
    json_t *root = json_loadb(bytes != NULL ? bytes : "", size, JSON_ALLOW_NUL, &at);
    if (root == NULL)
        return json_error_code(&at) == json_error_out_of_memory
                   ? fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: out of memory", name)
                   : fab_fail(err, PMIXFAB_ERR_SYNTAX, "%s:%d:%d: %s", name, at.line, at.column, at.text);
    int rc = json_object_get(root, "lldp") != NULL
                 ? read_neighbours(root, name, sink, report, err)
                 : record_parse(bytes, size, name, FAB_FROM_LLDP, report, err);
    json_decref(root);
    return rc;
}
