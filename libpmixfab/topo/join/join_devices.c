/*
 * join_devices.c - the devices of all reports, with the reported values of each.
 *
 * Items of one report are put together to devices in these stages, each of which uses the results of the
 * earlier ones:
 *   1. An item with a port GUID, or with a name and a port, makes or joins an RDMA port. Name and port
 *      lead to the port whose GUID was given with them (the lowest of several).
 *   2. An item with a name and no port joins the ports of that name.
 *   3. An item with a PCI address joins the ports there; with a port number only those of that number, with
 *      an interface those that have it, or else those whose interface is unknown.
 *   4. An item with an interface joins the ports that have it.
 *   5. A remaining item with an interface makes or joins an Ethernet device of that interface.
 *   6. A remaining item with a PCI address joins the Ethernet devices there.
 * A key that leads to no port, or to more than JOIN_MAX_SHARED ports, is skipped. An item that fits several
 * ports is `shared`. An item that is left after stage 6 belongs to no device.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/array.h"
#include "topo/join/join_state.h"

/* ---- lists of devices and their items -------------------------------------------------------------- */

void join_groups_free(struct join_groups *groups)
{
    free(groups->groups);
    free(groups->links);
    memset(groups, 0, sizeof(*groups));
}

static int join_groups_room(struct join_groups *out, uint32_t n, uint32_t n_links)
{
    return FAB_ARRAY_ROOM(&out->groups, &out->cap, (uint64_t)out->n + n) &&
                   FAB_ARRAY_ROOM(&out->links, &out->cap_links, (uint64_t)out->n_links + n_links)
               ? PMIXFAB_OK
               : PMIXFAB_ERR_NOMEM;
}

static int join_groups_copy(const struct join_groups *from, uint32_t first, uint32_t n, uint32_t number,
                            struct join_groups *out)
{
    if (n == 0)
        return PMIXFAB_OK;
    const struct join_group *old = &from->groups[first]; /* links are in the order of their groups */
    uint32_t n_links = old[n - 1].first + old[n - 1].n - old[0].first;
    int rc = join_groups_room(out, n, n_links);
    if (rc != PMIXFAB_OK)
        return rc;
    for (uint32_t g = 0; g < n; g++)
        out->groups[out->n + g] =
            (struct join_group){number, out->n_links + (old[g].first - old[0].first), old[g].n, old[g].rdma};
    memcpy(out->links + out->n_links, from->links + old[0].first, n_links * sizeof(*out->links));
    out->n += n;
    out->n_links += n_links;
    return PMIXFAB_OK;
}

/* ---- items of one device --------------------------------------------------------------------------- */

/* Keys are kinds of facts with a text; name and port together form one kind for each number. */
#define KEY_PAIR 0x100u

struct key {
    const char *text;
    uint32_t hash;
    uint16_t kind;
    uint16_t n; /* more than JOIN_MAX_SHARED: too many */
    uint32_t devs[JOIN_MAX_SHARED];
};

/* The values by which an item is attached. */
struct view {
    const char *name, *port, *interface, *guid, *pci;
    bool done;
};

/* A device under construction. */
struct found {
    const char *guid;
    uint64_t numbers[4]; /* of its base items */
    uint32_t n;
    bool rdma, has_interface;
};

struct pair {
    uint32_t dev, item;
    bool shared;
};

struct join_scratch {
    const struct fab_report *report;
    struct view *views;
    struct found *found;
    struct pair *pairs;
    struct key *keys;
    uint32_t *slots;
    uint32_t cap, n_slots; /* items; a power of two */
    uint32_t n_found, n_pairs, n_keys, n_known;
    uint64_t seed; /* secret from the senders of reports; the result does not depend on it */
};

void join_scratch_free(struct join_scratch *s)
{
    if (s == NULL)
        return;
    free(s->views);
    free(s->found);
    free(s->pairs);
    free(s->keys);
    free(s->slots);
    free(s);
}

#define KEYS_OF_ITEM  5u
#define SLOTS_OF_ITEM 8u

/* Make empty room for a report. */
static int scratch_prepare(struct join_scratch *s, const struct fab_report *report)
{
    if (report->n_items > s->cap || s->views == NULL) {
        uint32_t cap = 64;
        while (cap < report->n_items)
            cap *= 2;
        free(s->views);
        free(s->found);
        free(s->pairs);
        free(s->keys);
        free(s->slots);
        s->views = malloc(cap * sizeof(*s->views));
        s->found = malloc(cap * sizeof(*s->found));
        s->pairs = malloc((size_t)cap * JOIN_MAX_SHARED * sizeof(*s->pairs));
        s->keys = malloc((size_t)cap * KEYS_OF_ITEM * sizeof(*s->keys));
        s->slots = malloc((size_t)cap * SLOTS_OF_ITEM * sizeof(*s->slots));
        s->cap = cap;
        if (s->views == NULL || s->found == NULL || s->pairs == NULL || s->keys == NULL || s->slots == NULL)
            return PMIXFAB_ERR_NOMEM;
    }
    for (s->n_slots = SLOTS_OF_ITEM; s->n_slots < report->n_items * SLOTS_OF_ITEM;)
        s->n_slots *= 2;
    s->report = report;
    s->n_found = s->n_pairs = s->n_keys = s->n_known = 0;
    memset(s->slots, 0xff, s->n_slots * sizeof(*s->slots));
    return PMIXFAB_OK;
}

static struct key *scratch_find_key(struct join_scratch *s, unsigned kind, const char *text, bool make)
{
    uint64_t hash = XXH3_64bits_withSeed(text, strlen(text), s->seed + kind);
    uint32_t slot = (uint32_t)hash & (s->n_slots - 1);
    for (; s->slots[slot] != FAB_NONE; slot = (slot + 1) & (s->n_slots - 1)) {
        struct key *key = &s->keys[s->slots[slot]];
        if (key->hash == (uint32_t)(hash >> 32) && key->kind == kind && strcmp(key->text, text) == 0)
            return key;
    }
    if (!make)
        return NULL;
    s->slots[slot] = s->n_keys;
    struct key *key = &s->keys[s->n_keys++];
    key->text = text;
    key->hash = (uint32_t)(hash >> 32);
    key->kind = (uint16_t)kind;
    key->n = 0;
    return key;
}

static void key_add(struct join_scratch *s, unsigned kind, const char *text, uint32_t dev)
{
    if (text == NULL)
        return;
    struct key *key = scratch_find_key(s, kind, text, true);
    for (uint32_t i = 0; i < key->n && i < JOIN_MAX_SHARED; i++)
        if (key->devs[i] == dev)
            return;
    if (key->n < JOIN_MAX_SHARED)
        key->devs[key->n] = dev;
    key->n += key->n <= JOIN_MAX_SHARED;
}

static unsigned item_port_number(const char *text)
{
    unsigned long n = strtoul(text, NULL, 10);
    return n <= 254 ? (unsigned)n : 0;
}

static void look_at_items(struct join_scratch *s)
{
    const struct fab_report *report = s->report;
    for (uint32_t i = 0; i < report->n_items; i++) {
        struct view *view = &s->views[i];
        *view = (struct view){.done = false};
        for (uint32_t f = 0; f < report->items[i].n; f++) {
            const struct fab_report_fact *fact = &report->facts[report->items[i].first + f];
            const char *text = report->pool + fact->text;
            if (fact->kind == FAB_FACT_NAME)
                view->name = text;
            else if (fact->kind == FAB_FACT_PORT)
                view->port = text;
            else if (fact->kind == FAB_FACT_INTERFACE)
                view->interface = text;
            else if (fact->kind == FAB_FACT_PORT_GUID)
                view->guid = text;
            else if (fact->kind == FAB_FACT_PCI)
                view->pci = text;
            if (fact->kind >= FAB_FACT_PCI)
                break;
        }
    }
}

static uint32_t new_device(struct join_scratch *s, bool rdma, const char *guid)
{
    s->found[s->n_found] = (struct found){.guid = guid, .rdma = rdma};
    return s->n_found++;
}

static void scratch_attach(struct join_scratch *s, uint32_t item, uint32_t dev, bool shared)
{
    s->pairs[s->n_pairs++] = (struct pair){dev, item, shared};
    s->found[dev].n++;
    s->views[item].done = true;
}

static void attach_base(struct join_scratch *s, uint32_t item, uint32_t dev)
{
    const struct view *view = &s->views[item];
    if (view->port != NULL) {
        unsigned num = item_port_number(view->port);
        s->found[dev].numbers[num / 64] |= UINT64_C(1) << num % 64;
    }
    key_add(s, FAB_FACT_NAME, view->name, dev);
    scratch_attach(s, item, dev, false);
}

/* Stage 1. */
static void scratch_find_ports(struct join_scratch *s)
{
    const uint32_t n = s->report->n_items;
    for (uint32_t i = 0; i < n; i++) {
        const struct view *view = &s->views[i];
        if (view->guid == NULL)
            continue;
        struct key *key = scratch_find_key(s, FAB_FACT_PORT_GUID, view->guid, true);
        if (key->n == 0) {
            key->devs[0] = new_device(s, true, view->guid);
            key->n = 1;
        }
        uint32_t dev = key->devs[0];
        if (view->name != NULL && view->port != NULL) {
            struct key *pair = scratch_find_key(s, KEY_PAIR | item_port_number(view->port), view->name, true);
            if (pair->n == 0 || strcmp(view->guid, s->found[pair->devs[0]].guid) < 0)
                pair->devs[0] = dev;
            pair->n = 1;
        }
        attach_base(s, i, dev);
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct view *view = &s->views[i];
        if (view->done || view->name == NULL || view->port == NULL)
            continue;
        struct key *pair = scratch_find_key(s, KEY_PAIR | item_port_number(view->port), view->name, true);
        if (pair->n == 0) {
            pair->devs[0] = new_device(s, true, NULL);
            pair->n = 1;
        }
        attach_base(s, i, pair->devs[0]);
    }
}

/* Record the addresses and interfaces of devices that the last stages attached. */
static void scratch_learn(struct join_scratch *s)
{
    for (; s->n_known < s->n_pairs; s->n_known++) {
        const struct pair *pair = &s->pairs[s->n_known];
        const struct view *view = &s->views[pair->item];
        key_add(s, FAB_FACT_PCI, view->pci, pair->dev);
        if (pair->shared || view->interface == NULL)
            continue;
        key_add(s, FAB_FACT_INTERFACE, view->interface, pair->dev);
        s->found[pair->dev].has_interface = true;
    }
}

/* Write the ports of a key to devs. Return their number; 0 for none or too many. */
static uint32_t scratch_ports_by_key(struct join_scratch *s, unsigned kind, const char *text, uint32_t *devs)
{
    const struct key *key = scratch_find_key(s, kind, text, false);
    if (key == NULL || key->n > JOIN_MAX_SHARED)
        return 0;
    memcpy(devs, key->devs, key->n * sizeof(*devs));
    return key->n;
}

static bool devs_contain(const uint32_t *devs, uint32_t n, uint32_t dev)
{
    for (uint32_t i = 0; i < n; i++)
        if (devs[i] == dev)
            return true;
    return false;
}

/* Keep those that have the item's port number, and its interface or none. */
static uint32_t scratch_narrow(struct join_scratch *s, const struct view *view, uint32_t *devs, uint32_t n)
{
    uint32_t kept = 0;
    if (view->port != NULL) {
        unsigned num = item_port_number(view->port);
        for (uint32_t i = 0; i < n; i++)
            if ((s->found[devs[i]].numbers[num / 64] >> num % 64 & 1) != 0)
                devs[kept++] = devs[i];
        n = kept;
    }
    if (view->interface == NULL)
        return n;
    const struct key *key = scratch_find_key(s, FAB_FACT_INTERFACE, view->interface, false);
    uint32_t known = key == NULL || key->n > JOIN_MAX_SHARED ? 0 : key->n;
    bool some = false;
    for (uint32_t i = 0; i < n; i++)
        some = some || devs_contain(key == NULL ? NULL : key->devs, known, devs[i]);
    kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (some ? devs_contain(key->devs, known, devs[i]) : !s->found[devs[i]].has_interface)
            devs[kept++] = devs[i];
    return kept;
}

/* Stages 2, 3, 4 and 6: attach the remaining items that have this key. */
static void attach_by(struct join_scratch *s, unsigned kind)
{
    uint32_t devs[JOIN_MAX_SHARED];
    for (uint32_t i = 0; i < s->report->n_items; i++) {
        const struct view *view = &s->views[i];
        const char *text = kind == FAB_FACT_NAME  ? view->name
                           : kind == FAB_FACT_PCI ? view->pci
                                                  : view->interface;
        if (view->done || text == NULL)
            continue;
        uint32_t n = scratch_ports_by_key(s, kind, text, devs);
        if (kind == FAB_FACT_PCI)
            n = scratch_narrow(s, view, devs, n);
        for (uint32_t k = 0; k < n; k++)
            scratch_attach(s, i, devs[k], n > 1);
    }
    scratch_learn(s);
}

/* Stage 5. Keys of PCI addresses start empty: from now on they lead to interfaces only. */
static void find_interfaces(struct join_scratch *s)
{
    s->n_keys = 0;
    memset(s->slots, 0xff, s->n_slots * sizeof(*s->slots));
    for (uint32_t i = 0; i < s->report->n_items; i++) {
        const struct view *view = &s->views[i];
        if (view->done || view->interface == NULL)
            continue;
        struct key *key = scratch_find_key(s, FAB_FACT_INTERFACE, view->interface, true);
        if (key->n == 0) {
            key->devs[0] = new_device(s, false, NULL);
            key->n = 1;
        }
        scratch_attach(s, i, key->devs[0], false);
    }
    scratch_learn(s);
}

static int hand_out(struct join_scratch *s, uint32_t number, struct join_groups *out)
{
    int rc = join_groups_room(out, s->n_found, s->n_pairs);
    if (rc != PMIXFAB_OK)
        return rc;
    struct join_group *first = out->groups + out->n;
    for (uint32_t d = 0; d < s->n_found; d++) {
        first[d] = (struct join_group){number, out->n_links, 0, s->found[d].rdma};
        out->n_links += s->found[d].n;
    }
    for (uint32_t p = 0; p < s->n_pairs; p++) {
        struct join_group *group = &first[s->pairs[p].dev];
        out->links[group->first + group->n++] = (struct join_link){s->pairs[p].item, s->pairs[p].shared};
    }
    out->n += s->n_found;
    return PMIXFAB_OK;
}

int join_group_report(const struct fab_report *report, uint32_t number, struct join_groups *out,
                      struct join_scratch **scratch)
{
    if (*scratch == NULL) {
        *scratch = calloc(1, sizeof(**scratch));
        if (*scratch == NULL)
            return PMIXFAB_ERR_NOMEM;
        (*scratch)->seed = (uint64_t)(uintptr_t)*scratch * UINT64_C(0x9e3779b97f4a7c15);
    }
    struct join_scratch *s = *scratch;
    int rc = scratch_prepare(s, report);
    if (rc != PMIXFAB_OK)
        return rc;
    look_at_items(s);
    scratch_find_ports(s);
    scratch_learn(s);
    attach_by(s, FAB_FACT_NAME);
    attach_by(s, FAB_FACT_PCI);
    attach_by(s, FAB_FACT_INTERFACE);
    find_interfaces(s);
    attach_by(s, FAB_FACT_PCI);
    return hand_out(s, number, out);
}

/* ---- reported values of devices --------------------------------------------------------------------- */

/* Kinds that decide about the place of a device. */
static const bool is_wanted[FAB_FACTS] = {
    [FAB_FACT_NAME] = true,        [FAB_FACT_PORT] = true,        [FAB_FACT_INTERFACE] = true,
    [FAB_FACT_NODE_GUID] = true,   [FAB_FACT_SYSTEM_GUID] = true, [FAB_FACT_PORT_GUID] = true,
    [FAB_FACT_MAC] = true,         [FAB_FACT_TYPE] = true,        [FAB_FACT_STATE] = true,
    [FAB_FACT_SPEED] = true,       [FAB_FACT_LID] = true,         [FAB_FACT_SWITCH_ID] = true,
    [FAB_FACT_SWITCH_NAME] = true, [FAB_FACT_SWITCH_PORT] = true, [FAB_FACT_PCI] = true,
};

static uint64_t join_parse_guid(const char *text)
{
    return text == NULL ? 0 : strtoull(text, NULL, 16);
}

static uint64_t join_parse_number(const char *text, uint64_t most)
{
    uint64_t n = text == NULL ? 0 : strtoull(text, NULL, 10);
    return n > most ? 0 : n;
}

uint64_t join_mac_value(const char *text)
{
    uint64_t mac = 0;
    if (text == NULL || strlen(text) != 17)
        return 0;
    for (unsigned i = 0; i < 17; i++) {
        const char *digit = text[i] == '\0' ? NULL : strchr("0123456789abcdef", text[i]);
        if (i % 3 == 2 ? text[i] != ':' : digit == NULL)
            return 0;
        if (i % 3 != 2)
            mac = mac << 4 | (uint64_t)(digit - "0123456789abcdef");
    }
    return mac;
}

static uint8_t join_parse_state(const char *text)
{
    if (text == NULL || (strcmp(text, "up") != 0 && strcmp(text, "down") != 0))
        return FAB_PORT_UNKNOWN;
    return text[0] == 'u' ? FAB_PORT_ACTIVE : FAB_PORT_DOWN;
}

/* For each wanted kind find the chosen fact of the report, without the sweep's, and its number. */
static void join_choose_facts(const struct join *j, const struct join_group *group, struct join_fact *best,
                              uint32_t *which)
{
    const struct fab_report *report = j->reports[group->report];
    memset(best, 0, FAB_FACTS * sizeof(*best));
    memset(which, 0xff, FAB_FACTS * sizeof(*which));
    for (uint32_t l = 0; l < group->n; l++) {
        const struct join_link *link = &j->groups.links[group->first + l];
        const struct fab_report_item *item = &report->items[link->item];
        for (uint32_t f = item->first; f < item->first + item->n; f++) {
            const struct fab_report_fact *fact = &report->facts[f];
            if (!is_wanted[fact->kind] || (link->shared && join_per_port(fact->kind)))
                continue;
            const struct join_fact said = {.text = report->pool + fact->text,
                                           .source = item->source,
                                           .kind = fact->kind,
                                           .estimate = fact->estimate};
            if (!join_better(&said, &best[fact->kind]))
                continue;
            best[fact->kind] = said;
            which[fact->kind] = f;
        }
    }
}

static void read_words(const struct join *j, const struct join_group *group, struct join_words *out)
{
    struct join_fact best[FAB_FACTS];
    uint32_t which[FAB_FACTS];
    join_choose_facts(j, group, best, which);
    const char *type = best[FAB_FACT_TYPE].text;
    *out = (struct join_words){
        .port_guid = join_parse_guid(best[FAB_FACT_PORT_GUID].text),
        .node_guid = join_parse_guid(best[FAB_FACT_NODE_GUID].text),
        .system_guid = join_parse_guid(best[FAB_FACT_SYSTEM_GUID].text),
        .mac = join_mac_value(best[FAB_FACT_MAC].text),
        .mbps = join_parse_number(best[FAB_FACT_SPEED].text, UINT64_MAX),
        .text = {[JOIN_NAME] = which[FAB_FACT_NAME],
                 [JOIN_INTERFACE] = which[FAB_FACT_INTERFACE],
                 [JOIN_PCI] = which[FAB_FACT_PCI],
                 [JOIN_SWITCH_ID] = which[FAB_FACT_SWITCH_ID],
                 [JOIN_SWITCH_NAME] = which[FAB_FACT_SWITCH_NAME],
                 [JOIN_SWITCH_PORT] = which[FAB_FACT_SWITCH_PORT]},
        .lid = (uint16_t)join_parse_number(best[FAB_FACT_LID].text, UINT16_MAX),
        .num = (uint8_t)join_parse_number(best[FAB_FACT_PORT].text, 254),
        .state = join_parse_state(best[FAB_FACT_STATE].text),
        .infiniband = type != NULL && strcmp(type, "InfiniBand") == 0,
    };
}

static const char *join_fact_text(const struct fab_report *report, const struct join_words *words,
                                  unsigned which)
{
    uint32_t fact = words->text[which];
    return fact == FAB_NONE ? NULL : report->pool + report->facts[fact].text;
}

static void make_device(struct join *j, uint32_t g, uint32_t before)
{
    const struct join_group *group = &j->groups.groups[g];
    const struct fab_report *report = j->reports[group->report];
    const struct join_words *words = &j->words[g];
    j->devs[g] = (struct join_dev){
        .port_guid = words->port_guid,
        .node_guid = words->node_guid,
        .system_guid = words->system_guid,
        .mac = words->mac,
        .name = join_fact_text(report, words, JOIN_NAME),
        .interface = join_fact_text(report, words, JOIN_INTERFACE),
        .pci = join_fact_text(report, words, JOIN_PCI),
        .node_name = join_fact_text(report, words, JOIN_NAME),
        .switch_id = join_fact_text(report, words, JOIN_SWITCH_ID),
        .switch_name = join_fact_text(report, words, JOIN_SWITCH_NAME),
        .switch_port = join_fact_text(report, words, JOIN_SWITCH_PORT),
        .mbps = words->mbps,
        .group = g,
        .report = group->report,
        .before = before,
        .swept_port = FAB_NONE,
        .swept_node = FAB_NONE,
        .node = FAB_NONE,
        .plane = FAB_NONE,
        .port = FAB_NONE,
        .sibling = FAB_NONE,
        .lid = words->lid,
        .num = words->num,
        .state = words->state,
        .infiniband = words->infiniband,
        .rdma = group->rdma,
    };
}

int join_read(struct join *j)
{
    struct join_scratch *scratch = NULL;
    int rc = PMIXFAB_OK;
    j->first_dev = join_alloc(j, j->n_reports, sizeof(*j->first_dev));
    if (j->no_memory)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t r = 0; r < j->n_reports && rc == PMIXFAB_OK; r++) {
        const struct join_cached_report *old =
            j->before[r] == FAB_NONE ? NULL : &j->cache->reports[j->before[r]];
        rc = old == NULL ? join_group_report(j->reports[r], r, &j->groups, &scratch)
                         : join_groups_copy(&j->cache->groups, old->first, old->n, r, &j->groups);
        j->first_dev[r + 1] = j->groups.n;
    }
    join_scratch_free(scratch);
    if (rc != PMIXFAB_OK)
        return rc;
    j->n_devs = j->groups.n;
    j->devs = join_alloc(j, j->n_devs, sizeof(*j->devs));
    j->words = calloc(j->n_devs + 1u, sizeof(*j->words));
    if (j->no_memory || j->words == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t g = 0; g < j->n_devs; g++) {
        const uint32_t r = j->groups.groups[g].report, old = j->before[r];
        uint32_t before = old == FAB_NONE ? FAB_NONE : j->cache->reports[old].first + g - j->first_dev[r];
        if (before == FAB_NONE)
            read_words(j, &j->groups.groups[g], &j->words[g]);
        else
            j->words[g] = j->cache->words[before];
        make_device(j, g, before);
    }
    return PMIXFAB_OK;
}
