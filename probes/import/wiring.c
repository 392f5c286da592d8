/* wiring.c - make an inventory from names; read YAML documents. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "probes/import/import.h"
#include "topo/base/array.h"
#include "topo/base/hostlist.h"
#include "topo/base/text.h"

#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(one) ((one)->lost = true)
#include <uthash.h>

/* ---- from names to an inventory ---- */

#define MOST_PORTS  254
#define MOST_BELOW  (MOST_PORTS - 1) /* of a generated switch: without the cable to the one above it */
#define MOST_LIST   (MOST_PORTS * MOST_BELOW) /* maximum number of names below one switch */
#define MOST_CABLES 1000000
#define MOST_NAME   64                                   /* bytes of an InfiniBand node description */
#define MOST_HOST   (MOST_NAME - (int)sizeof("HCA-254")) /* without a blank and the device's name */

struct wired_node {
    UT_hash_handle hh;
    struct wired_node *joined; /* wiring_find_views(): a switch that it is joined with; NULL: none so far */
    uint32_t index;            /* of a switch in the inventory */
    struct wiring_place place;
    const struct wired_node *parent; /* wiring_parent() */
    uint32_t list;                   /* the last one that contained it */
    uint32_t n_above, n_below;       /* cables */
    struct wired_node *between;      /* wiring_split(): the last generated switch below it */
    unsigned n_between;
    uint16_t n_hcas;
    uint8_t part, view;  /* view: of wiring_find_views(), from 1 */
    bool lost, has_said; /* has_said: a port is given */
    uint8_t taken[32];   /* ports in use, one bit each */
    char key[];          /* S or H, the part's number from 1 as a byte, the name */
};

struct wired_cable {
    struct wiring_link link;
    uint8_t below_port; /* of a switch */
};

#define KEY_NAME 2 /* offset of the name */

static bool wired_is_switch(const struct wired_node *node)
{
    return node->key[0] == 'S';
}

int wiring_fail(const struct wiring *w, struct wiring_place at, int code, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return fab_fail(w->err, code, "%s:%" PRIu32 ":%" PRIu32 ": %s", w->file, at.line, at.column, text);
}

static int wiring_nomem(const struct wiring *w)
{
    return fab_fail(w->err, PMIXFAB_ERR_NOMEM, "%s: out of memory", w->file);
}

/* ---- names ---- */

static bool is_host_name(const char *name, size_t len)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    for (size_t i = 0; i < len; i++)
        if (name[i] == '\0' || strchr(allowed, name[i]) == NULL)
            return false;
    return len > 0 && len <= MOST_HOST && strchr("._-", name[0]) == NULL;
}

/* The naming of fabrics would misread names outside these rules. */
static int wiring_check_name(const struct wiring *w, const struct wiring_end *end)
{
    char shown[MOST_NAME + 1];
    fab_text_clean(shown, sizeof(shown), end->name, end->len, "\"");
    if (!end->is_switch && !is_host_name(end->name, end->len))
        return wiring_fail(
            w, end->place, PMIXFAB_ERR_SYNTAX,
            "\"%s\" is not a host name: 1 to %d letters, digits, dots, _ and -, a letter or digit first",
            shown, MOST_HOST);
    if (end->len == 0 || end->len > MOST_NAME || strlen(shown) != end->len ||
        memcmp(shown, end->name, end->len) != 0 || end->name[0] == ' ')
        return wiring_fail(w, end->place, PMIXFAB_ERR_SYNTAX,
                           "\"%s\" is not a switch name: 1 to %d visible bytes, without quotes", shown,
                           MOST_NAME);
    return PMIXFAB_OK;
}

/* Return the key's length; 0: the name is too long. */
static size_t wiring_key(const struct wiring_end *end, char key[KEY_NAME + MOST_NAME + 1])
{
    if (end->len > MOST_NAME)
        return 0;
    key[0] = end->is_switch ? 'S' : 'H';
    key[1] = (char)(end->part + 1);
    memcpy(key + KEY_NAME, end->name, end->len);
    key[KEY_NAME + end->len] = '\0';
    return KEY_NAME + end->len;
}

const struct wired_node *wiring_find(const struct wiring *w, const struct wiring_end *end)
{
    char key[KEY_NAME + MOST_NAME + 1];
    struct wired_node *found = NULL;
    const size_t len = wiring_key(end, key);
    if (len > 0)
        HASH_FIND(hh, w->nodes, key, len, found);
    return found;
}

int wiring_node(struct wiring *w, const struct wiring_end *end, struct wired_node **out)
{
    struct wired_node *node = *out = (struct wired_node *)wiring_find(w, end);
    int rc = node != NULL ? PMIXFAB_OK : wiring_check_name(w, end);
    if (node != NULL || rc != PMIXFAB_OK)
        return rc;
    node = calloc(1, sizeof(*node) + KEY_NAME + end->len + 1);
    if (node == NULL)
        return wiring_nomem(w);
    const size_t len = wiring_key(end, node->key);
    node->place = end->place;
    node->part = end->part;
    HASH_ADD_KEYPTR(hh, w->nodes, node->key, len, node);
    if (node->lost) {
        free(node);
        return wiring_nomem(w);
    }
    *out = node;
    return PMIXFAB_OK;
}

int wiring_cable(struct wiring *w, const struct wiring_link *link)
{
    if (link->below == link->above)
        return wiring_fail(w, link->place, PMIXFAB_ERR_CONFLICT, "switch \"%s\" is cabled to itself",
                           link->above->key + KEY_NAME);
    if (w->n_cables == MOST_CABLES)
        return wiring_fail(w, link->place, PMIXFAB_ERR_RANGE, "more than %d cables", MOST_CABLES);
    if (!FAB_ARRAY_ROOM(&w->cables, &w->cap_cables, (uint64_t)w->n_cables + 1))
        return wiring_nomem(w);
    w->cables[w->n_cables++] = (struct wired_cable){.link = *link};
    link->below->n_above++;
    link->above->n_below++;
    link->above->has_said |= link->port != 0;
    return PMIXFAB_OK;
}

/* ---- several topologies of the same hosts ---- */

int wiring_view(struct wiring *w, const struct wiring_end *name, bool is_default)
{
    struct fab_subnet view = {.prefix = FAB_DEFAULT_PREFIX, .is_default = is_default};
    if (w->n_views == FAB_MAX_SUBNETS)
        return wiring_fail(w, name->place, PMIXFAB_ERR_RANGE, "more than %d topologies", FAB_MAX_SUBNETS);
    for (size_t i = 0; i < name->len && i + 1 < sizeof(view.view); i++)
        view.view[i] = isalnum((unsigned char)name->name[i]) || strchr("_-", name->name[i]) != NULL ||
                               (name->name[i] == '.' && i > 0)
                           ? name->name[i]
                           : '_';
    for (uint32_t i = 0; i < w->n_views; i++)
        if (strcmp(w->views[i].view, view.view) == 0)
            return wiring_fail(w, name->place, PMIXFAB_ERR_CONFLICT, "a second topology of this name");
    for (uint32_t i = 0; i < w->n_views; i++)
        view.is_default &= !w->views[i].is_default; /* only the first one is the default */
    w->views[w->n_views++] = view;
    return PMIXFAB_OK;
}

static struct wired_node *wired_root(struct wired_node *node)
{
    for (; node->joined != NULL; node = node->joined)
        if (node->joined->joined != NULL)
            node->joined = node->joined->joined;
    return node;
}

/* Join the switches that cables join. Return whether a host is below two that are not joined. */
static bool wiring_join(struct wiring *w)
{
    bool several = false;
    for (uint32_t i = 0; i < w->n_cables; i++) {
        struct wired_node *below = w->cables[i].link.below;
        if (!wired_is_switch(below))
            continue;
        below = wired_root(below);
        struct wired_node *above = wired_root(w->cables[i].link.above);
        if (below != above)
            below->joined = above;
    }
    for (uint32_t i = 0; i < w->n_cables; i++) {
        struct wired_node *host = w->cables[i].link.below, *above = wired_root(w->cables[i].link.above);
        if (wired_is_switch(host))
            continue;
        several |= host->joined != NULL && host->joined != above;
        host->joined = above;
    }
    return several;
}

/*
 * Return the top switch with the lowest name whose topology has no number yet; NULL: none. The order of the
 * file does not matter.
 */
static struct wired_node *wiring_next_top(struct wiring *w)
{
    struct wired_node *top = NULL;
    for (struct wired_node *node = w->nodes; node != NULL; node = node->hh.next)
        if (wired_is_switch(node) && node->n_above == 0 && wired_root(node)->view == 0 &&
            (top == NULL || strcmp(node->key + KEY_NAME, top->key + KEY_NAME) < 0))
            top = node;
    return top;
}

int wiring_find_views(struct wiring *w)
{
    int rc = PMIXFAB_OK;
    struct wired_node *top;
    if (!wiring_join(w))
        return rc;
    while (rc == PMIXFAB_OK && (top = wiring_next_top(w)) != NULL) {
        const char *name = top->key + KEY_NAME;
        if (w->n_views == FAB_MAX_SUBNETS) { /* too many for names: planes follow the cables */
            w->n_views = 0;
            return PMIXFAB_OK;
        }
        rc = wiring_view(w, &(struct wiring_end){.name = name, .len = strlen(name), .place = top->place},
                         false);
        wired_root(top)->view = (uint8_t)w->n_views;
    }
    for (struct wired_node *node = w->nodes; node != NULL && rc == PMIXFAB_OK; node = node->hh.next)
        if (wired_is_switch(node) && wired_root(node)->view > 0)
            node->part = (uint8_t)(wired_root(node)->view - 1);
    return rc;
}

/* ---- generated switches ---- */

/* Add one below another: NAME-1, NAME-2 and so on, skipping used names. */
static int wiring_add_between(struct wiring *w, struct wired_node *above, struct wiring_place place)
{
    char name[MOST_NAME + 16];
    struct wiring_end end = {.name = name, .place = place, .part = above->part, .is_switch = true};
    struct wiring_link link = {.above = above, .place = place};
    do
        end.len = (size_t)snprintf(name, sizeof(name), "%s-%u", above->key + KEY_NAME, ++above->n_between);
    while (wiring_find(w, &end) != NULL);
    int rc = wiring_node(w, &end, &link.below) ?: wiring_cable(w, &link);
    above->between = link.below;
    return rc;
}

/*
 * Cloud files list one switch with more hosts than any switch has ports. Then generated switches are put
 * between, each full before the next one, so that an additional host moves no other.
 */
static int wiring_split(struct wiring *w)
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0, n = w->n_cables; i < n && rc == PMIXFAB_OK; i++) {
        struct wired_node *const above = w->cables[i].link.above;
        if (above->has_said || (above->between == NULL && above->n_below + above->n_above <= MOST_PORTS))
            continue;
        if (above->between == NULL || above->between->n_below == MOST_BELOW) {
            rc = wiring_add_between(w, above, w->cables[i].link.place);
            if (rc != PMIXFAB_OK)
                break;
        }
        w->cables[i].link.above = above->between;
        above->between->n_below++;
        above->n_below--;
    }
    return rc;
}

/* ---- ports ---- */

static bool take_port(struct wired_node *node, unsigned port)
{
    const uint8_t bit = (uint8_t)(1u << port % 8);
    const bool was_free = (node->taken[port / 8] & bit) == 0;
    node->taken[port / 8] |= bit;
    return was_free;
}

/* Take the lowest, or the highest, free port; 0: none is free. */
static uint8_t take_free_port(struct wired_node *node, bool lowest)
{
    for (unsigned i = 1; i <= MOST_PORTS; i++) {
        const unsigned port = lowest ? i : MOST_PORTS + 1 - i;
        if (take_port(node, port))
            return (uint8_t)port;
    }
    return 0;
}

/* Return the port that a name requests by the number at its end; 0: none. */
static unsigned wanted_port(const struct wired_node *node)
{
    const char *name = node->key + KEY_NAME, *digits = name + strlen(name);
    while (digits > name && digits[-1] >= '0' && digits[-1] <= '9' && strlen(digits) < 9)
        digits--;
    const unsigned long number = strtoul(digits, NULL, 10);
    return number == 0 ? 0 : (unsigned)((number - 1) % MOST_PORTS + 1);
}

static int no_port_left(const struct wiring *w, const struct wiring_link *link, const struct wired_node *node)
{
    return wiring_fail(w, link->place, PMIXFAB_ERR_RANGE,
                       "switch \"%s\" has more than %d cables, which is more than a switch has ports; add "
                       "the switches that are below it",
                       node->key + KEY_NAME, MOST_PORTS);
}

/* Assign the given ports first, then those requested by names, then the others. */
static int wiring_ports(struct wiring *w)
{
    struct wired_cable *const end = w->cables + w->n_cables;
    for (struct wired_cable *c = w->cables; c < end; c++)
        if (c->link.port != 0 && !take_port(c->link.above, c->link.port))
            return wiring_fail(w, c->link.place, PMIXFAB_ERR_CONFLICT,
                               "a second cable in port %u of switch \"%s\"", c->link.port,
                               c->link.above->key + KEY_NAME);
    for (struct wired_cable *c = w->cables; c < end; c++) {
        const unsigned port = c->link.port != 0 ? 0 : wanted_port(c->link.below);
        if (port != 0 && take_port(c->link.above, port))
            c->link.port = (uint8_t)port;
    }
    for (struct wired_cable *c = w->cables; c < end; c++)
        if (c->link.port == 0 && (c->link.port = take_free_port(c->link.above, true)) == 0)
            return no_port_left(w, &c->link, c->link.above);
    for (struct wired_cable *c = w->cables; c < end; c++)
        if (wired_is_switch(c->link.below) && (c->below_port = take_free_port(c->link.below, false)) == 0)
            return no_port_left(w, &c->link, c->link.below);
    return PMIXFAB_OK;
}

/* ---- the inventory ---- */

/*
 * `number` is the number of the HCA; 0: a switch. If planes have equally many devices, the plane with the
 * lower GUID comes first. So the number of the part is at the front of the GUID.
 */
static uint64_t wired_guid(const struct wired_node *node, unsigned part, unsigned number)
{
    const uint64_t hash = XXH3_64bits_withSeed(node->key, KEY_NAME + strlen(node->key + KEY_NAME), number);
    return FAB_GUID_OF_NAME(part) | hash >> 16;
}

static int add_wired_node(struct fab_inventory *inv, const struct wired_node *from, enum fab_node_kind kind,
                          uint64_t guid, const char *desc, uint32_t *index)
{
    const struct fab_node node = {.guid = guid,
                                  .system_guid = guid,
                                  .desc = fab_inventory_string(inv, desc, strlen(desc)),
                                  .line = from->place.line,
                                  .kind = (uint8_t)kind,
                                  .num_ports = kind == FAB_SWITCH ? MOST_PORTS : 1};
    return node.desc == FAB_NONE ? PMIXFAB_ERR_NOMEM : fab_inventory_add_node(inv, &node, index);
}

/* Add one end of a cable: the port of a switch, or a new HCA of a host. */
static int add_wired_end(const struct wiring *w, struct fab_inventory *inv, struct wired_node *node,
                         const struct wired_cable *cable, uint8_t number, uint32_t *port_index)
{
    struct fab_port port = {.peer = FAB_NONE,
                            .line = cable->link.place.line,
                            .num = number,
                            .state = FAB_PORT_ACTIVE,
                            .subnet = w->n_views > 1 ? cable->link.above->part : 0,
                            .width = cable->link.width,
                            .speed = cable->link.speed};
    int rc = PMIXFAB_OK;
    if (wired_is_switch(node)) {
        port.node = node->index;
    } else {
        char desc[MOST_NAME + 16];
        const unsigned hca = ++node->n_hcas;
        port.num = 1;
        port.guid = wired_guid(node, cable->link.above->part, hca);
        snprintf(desc, sizeof(desc), "%s HCA-%u", node->key + KEY_NAME, hca);
        rc = hca > MOST_PORTS ? PMIXFAB_ERR_RANGE
                              : add_wired_node(inv, node, FAB_HCA, port.guid, desc, &port.node);
    }
    return rc == PMIXFAB_OK ? fab_inventory_add_port(inv, &port, port_index) : rc;
}

static int add_wired_cable(const struct wiring *w, struct fab_inventory *inv, const struct wired_cable *cable)
{
    uint32_t a, b;
    return add_wired_end(w, inv, cable->link.below, cable, cable->below_port, &a)
               ?: add_wired_end(w, inv, cable->link.above, cable, cable->link.port, &b)
               ?: fab_inventory_link(inv, a, b);
}

/* view: of this topology only; -1: all. */
static int add_wired_cables(struct wiring *w, struct fab_inventory *inv, int view)
{
    for (uint32_t i = 0; i < w->n_cables; i++) {
        if (view >= 0 && w->cables[i].link.above->part != view)
            continue;
        const int rc = add_wired_cable(w, inv, &w->cables[i]);
        if (rc != PMIXFAB_OK)
            return wiring_fail(w, w->cables[i].link.place, rc, "%s", pmixfab_strerror(rc));
    }
    return PMIXFAB_OK;
}

int wiring_inventory(struct wiring *w, struct fab_inventory *inv)
{
    struct fab_err why = {{0}};
    if (w->n_cables == 0)
        return fab_fail(w->err, PMIXFAB_ERR_SYNTAX, "%s:1:1: the file puts nothing below a switch", w->file);
    int rc = wiring_split(w) ?: wiring_ports(w);
    if (rc != PMIXFAB_OK)
        return rc;
    for (struct wired_node *node = w->nodes; node != NULL && rc == PMIXFAB_OK; node = node->hh.next)
        if (wired_is_switch(node))
            rc = add_wired_node(inv, node, FAB_SWITCH, wired_guid(node, node->part, 0), node->key + KEY_NAME,
                                &node->index);
    if (rc != PMIXFAB_OK)
        return fab_fail(w->err, rc, "%s: %s", w->file, pmixfab_strerror(rc));
    rc = w->n_views > 1 ? PMIXFAB_OK : add_wired_cables(w, inv, -1);
    for (int view = 0; w->n_views > 1 && view < (int)w->n_views && rc == PMIXFAB_OK; view++)
        rc = add_wired_cables(w, inv, view); /* HCAs are numbered by topology, not in the order of the file */
    if (rc != PMIXFAB_OK)
        return rc;
    for (; w->n_views > 1 && inv->n_subnets < w->n_views; inv->n_subnets++)
        inv->subnets[inv->n_subnets] = w->views[inv->n_subnets];
    rc = fab_inventory_finish(inv, &why);
    return rc == PMIXFAB_OK ? rc
                            : fab_fail(w->err, rc, "%s: %s", w->file,
                                       why.text[0] != '\0' ? why.text : pmixfab_strerror(rc));
}

static int wiring_listed(struct wiring *w, struct wired_node *above, const struct wiring_end *child)
{
    struct wiring_link link = {.above = above, .place = child->place};
    if (child->is_switch && wiring_find(w, child) == NULL)
        return wiring_fail(w, child->place, PMIXFAB_ERR_NOTFOUND,
                           "switch \"%s\" is below \"%s\", but the file puts nothing below it", child->name,
                           above->key + KEY_NAME);
    int rc = wiring_node(w, child, &link.below);
    if (rc != PMIXFAB_OK)
        return rc;
    if (link.below->list == w->n_lists)
        return wiring_fail(w, child->place, PMIXFAB_ERR_CONFLICT, "\"%s\" is twice in this list",
                           child->name);
    link.below->list = w->n_lists;
    return wiring_cable(w, &link);
}

int wiring_list(struct wiring *w, struct wired_node *above, const char *names, const struct wiring_end *list)
{
    struct fab_hostlist each;
    struct fab_err why = {{0}};
    int rc = fab_hostlist_parse_most(names, MOST_LIST, &each, &why);
    if (rc != PMIXFAB_OK)
        return wiring_fail(w, list->place, rc, "%s", why.text);
    w->n_lists++;
    for (uint32_t i = 0; i < each.n && rc == PMIXFAB_OK; i++) {
        struct wiring_end child = *list;
        child.name = each.names[i];
        child.len = strlen(child.name);
        rc = wiring_listed(w, above, &child);
    }
    fab_hostlist_free(&each);
    return rc;
}

int wiring_parent(struct wiring *w, struct wired_node *below, struct wired_node *above,
                  struct wiring_place place)
{
    if (below->parent == above)
        return PMIXFAB_OK;
    if (below->parent != NULL)
        return wiring_fail(w, place, PMIXFAB_ERR_CONFLICT,
                           "switch \"%s\" is below \"%s\" here and below \"%s\" elsewhere",
                           below->key + KEY_NAME, above->key + KEY_NAME, below->parent->key + KEY_NAME);
    below->parent = above;
    return wiring_cable(w, &(struct wiring_link){.below = below, .above = above, .place = place});
}

void wiring_destroy(struct wiring *w)
{
    struct wired_node *node, *next;
    HASH_ITER(hh, w->nodes, node, next)
    {
        HASH_DELETE(hh, w->nodes, node); /* NOLINT(clang-analyzer-unix.Malloc): uthash moves on */
        free(node);
    }
    free(w->cables);
}

/* ---- libyaml's documents ---- */

int yaml_file_open(struct yaml_file *f, const struct wiring *w, const char *text, size_t len)
{
    yaml_parser_t parser;
    int rc = PMIXFAB_OK;
    *f = (struct yaml_file){.w = w};
    if (yaml_parser_initialize(&parser) == 0)
        return fab_fail(w->err, PMIXFAB_ERR_NOMEM, "%s: out of memory", w->file);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    if (yaml_parser_load(&parser, &f->document) == 0) {
        const struct wiring_place at = {(uint32_t)parser.problem_mark.line + 1,
                                        (uint32_t)parser.problem_mark.column + 1};
        rc = parser.error == YAML_MEMORY_ERROR
                 ? fab_fail(w->err, PMIXFAB_ERR_NOMEM, "%s: out of memory", w->file)
                 : wiring_fail(w, at, PMIXFAB_ERR_SYNTAX, "not valid YAML: %s",
                               parser.problem != NULL ? parser.problem : "it cannot be read");
    } else if (yaml_document_get_root_node(&f->document) == NULL) {
        yaml_document_delete(&f->document);
        rc = wiring_fail(w, (struct wiring_place){1, 1}, PMIXFAB_ERR_TRUNCATED, "the file is empty");
    }
    yaml_parser_delete(&parser);
    return rc;
}

void yaml_file_close(struct yaml_file *f)
{
    yaml_document_delete(&f->document);
}

struct wiring_place yaml_file_place(const yaml_node_t *node)
{
    return (struct wiring_place){(uint32_t)node->start_mark.line + 1, (uint32_t)node->start_mark.column + 1};
}

static bool is_text(const yaml_node_t *node, const char *text)
{
    return node != NULL && node->type == YAML_SCALAR_NODE &&
           strcmp((const char *)node->data.scalar.value, text) == 0;
}

const yaml_node_t *yaml_file_get(struct yaml_file *f, const yaml_node_t *map, const char *key)
{
    if (map == NULL || map->type != YAML_MAPPING_NODE)
        return NULL;
    for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top;
         pair++)
        if (is_text(yaml_document_get_node(&f->document, pair->key), key))
            return yaml_document_get_node(&f->document, pair->value);
    return NULL;
}

static bool is_null(const yaml_node_t *node)
{
    return node == NULL ||
           (node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
            (is_text(node, "") || is_text(node, "null") || is_text(node, "~")));
}

const yaml_node_t *yaml_file_item(struct yaml_file *f, const yaml_node_t *list, size_t i)
{
    if (is_null(list))
        return NULL;
    if (list->type != YAML_SEQUENCE_NODE)
        return i == 0 ? list : NULL;
    const yaml_node_item_t *items = list->data.sequence.items.start;
    return i < (size_t)(list->data.sequence.items.top - items)
               ? yaml_document_get_node(&f->document, items[i])
               : NULL;
}

int yaml_file_name(const struct yaml_file *f, const yaml_node_t *node, const char *what,
                   struct wiring_end *end)
{
    end->place = yaml_file_place(node);
    if (node->type != YAML_SCALAR_NODE)
        return wiring_fail(f->w, end->place, PMIXFAB_ERR_SYNTAX, "%s should be a text", what);
    end->name = (const char *)node->data.scalar.value;
    end->len = node->data.scalar.length;
    if (strlen(end->name) != end->len)
        return wiring_fail(f->w, end->place, PMIXFAB_ERR_SYNTAX, "%s contains a 0 byte", what);
    return PMIXFAB_OK;
}
