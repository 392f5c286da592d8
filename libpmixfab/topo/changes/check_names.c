/*
 * check_names.c - check names of hosts (missing, used twice, misleading, unusable) and devices that two hosts
 * claim.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo/base/order.h"
#include "topo/base/radix.h"
#include "topo/base/search.h"
#include "topo/changes/changes_private.h"
#include "topo/model/host_name.h"

/* ---- names used twice -------------------------------------------------------------------------------- */

#define NAMED      4 /* GUIDs listed in one finding */
#define GUIDS_TEXT (NAMED * 24 + 8)

static void append_guid(char guids[GUIDS_TEXT], const struct fab_node *node)
{
    size_t len = strlen(guids);
    snprintf(guids + len, GUIDS_TEXT - len, "%s0x%016" PRIx64, len == 0 ? "" : ", ", node->guid);
}

/* An HCA with its host and name, or a switch with its name. */
struct called {
    const char *host, *name;
    const struct fab_node *node;
};

static int compare_called(const struct called *a, const struct called *b)
{
    return FAB_ORDER(a->node->kind, b->node->kind) ?: strcmp(a->host, b->host)
           ?: strcmp(a->name, b->name)
           ?: FAB_ORDER(check_switch_view(a->node), check_switch_view(b->node));
}

static int check_compare_hcas(const void *x, const void *y)
{
    const struct called *a = x, *b = y;
    return compare_called(a, b) ?: FAB_ORDER(a->node->guid, b->node->guid);
}

static void add_same_names(struct check *c, const struct called *same, uint32_t n)
{
    char where[FAB_NODE_TEXT], guids[GUIDS_TEXT] = "";
    const bool switches = same->node->kind == FAB_SWITCH;
    if (same->name[0] == '\0')
        return;
    for (uint32_t i = 0; i < n && i < NAMED; i++)
        append_guid(guids, same[i].node);
    fab_plain_text(c->inv, same->node, where);
    /* Unmanaged switches keep their factory name; wherever they are named, their GUID is added. */
    check_add(c, switches ? FAB_CHECK_UNNAMED : FAB_CHECK_DUPLICATE_NAME, check_at_name(where, where, n),
              "%u %s have this name: %s%s", n, switches ? "switches" : "devices", guids,
              n > NAMED ? ", ..." : "");
}

/* Return whether a workload manager's list of hosts can contain the name. */
static bool is_writable(const char *host)
{
    static const char most[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    return host[strspn(host, most)] == '\0';
}

/* Check a host, given by its first HCA with a name. switches: n of them, in order of names. */
static void check_host_name(struct check *c, const struct called *hca, const struct called *switches,
                            uint32_t n)
{
    const char *host = hca->host;
    const uint32_t at = FAB_LOWER_BOUND(0, n, i, strcmp(switches[i].name, host) < 0);
    if (at < n && strcmp(switches[at].name, host) == 0)
        check_add(c, FAB_CHECK_SAME_NAME, check_at_name(host, host, 0),
                  "a host and the switch 0x%016" PRIx64
                  " have this name: programs that read a file with both confuse them",
                  switches[at].node->guid);
    char which[FAB_NODE_TEXT]; /* its name may also have a finding about case */
    snprintf(which, sizeof(which), "characters of %s", host);
    if (!is_writable(host))
        check_add(
            c, FAB_CHECK_CONFUSING_NAME, check_at_name(which, host, 0),
            "its name has other characters than letters, digits, '.', '_' and '-': exports leave it out");
}

static void check_host_names(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    struct called *all = check_array(c, inv->n_nodes, sizeof(*all));
    uint32_t n = 0;
    for (uint32_t i = 0; all != NULL && i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        if (node->kind == FAB_SWITCH || node->kind == FAB_HCA)
            all[n++] = (struct called){fab_str(inv, node->host), fab_str(inv, node->name), node};
    }
    if (n > 1)
        qsort(all, n, sizeof(*all), check_compare_hcas);
    for (uint32_t from = 0, to = 0; from < n; from = to) {
        while (to < n && compare_called(&all[from], &all[to]) == 0)
            to++;
        if (to - from > 1)
            add_same_names(c, all + from, to - from);
    }
    const uint32_t n_switches = FAB_LOWER_BOUND(0, n, i, all[i].node->kind < FAB_HCA);
    const struct called *last = NULL;
    for (const struct called *hca = all + n_switches; hca < all + n; hca++) {
        if (hca->node->unnamed || (last != NULL && strcmp(last->host, hca->host) == 0))
            continue;
        check_host_name(c, hca, all, n_switches);
        last = hca;
    }
}

/* ---- missing names ----------------------------------------------------------------------------------- */

static void check_unnamed(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    for (uint32_t n = 0; n < inv->n_nodes; n++) {
        const struct fab_node *node = &inv->nodes[n];
        char at[FAB_PORT_TEXT] = "";
        uint32_t p = node->first_port;
        if (node->kind != FAB_HCA || (!node->unnamed && !fab_host_is_local(fab_str(inv, node->host))))
            continue;
        while (p < node->first_port + node->n_ports && inv->ports[p].peer == FAB_NONE)
            p++;
        if (p < node->first_port + node->n_ports)
            fab_port_text(inv, &inv->ports[inv->ports[p].peer], at);
        check_add(c, FAB_CHECK_UNNAMED, check_at_node(inv, n, 0), "%s%s%s",
                  node->unnamed ? "named by its GUID: no source names its host"
                                : "its host has no name of its own",
                  at[0] != '\0' ? "; its cable is at " : "", at);
    }
}

/* ---- misleading names -------------------------------------------------------------------------------- */

/* Hash a name without regard to case; an address is hashed as it is. */
static uint64_t folded_hash(const char *host)
{
    const char *end = fab_host_is_address(host) ? "" : ".";
    char folded[FAB_HOST_MAX + 1];
    const size_t len = strcspn(host, end);
    size_t n = 0;
    for (; n < sizeof(folded) && n < len; n++)
        folded[n] = (char)tolower((unsigned char)host[n]);
    return check_hash(folded, n, 0);
}

/*
 * Of the hosts with one hash, report the first and the last in byte order if two of them differ by case only.
 */
static void add_case(struct check *c, const struct fab_key *keys, uint32_t n)
{
    const char *one = fab_str(c->inv, c->inv->nodes[keys[0].index].host), *least = one, *greatest = one;
    bool differ = false;
    for (uint32_t i = 1; i < n; i++) {
        const char *host = fab_str(c->inv, c->inv->nodes[keys[i].index].host);
        differ = differ || fab_host_differs_by_case(one, host);
        least = strcmp(host, least) < 0 ? host : least;
        greatest = strcmp(host, greatest) > 0 ? host : greatest;
    }
    if (differ)
        check_add(c, FAB_CHECK_CONFUSING_NAME, check_at_name(greatest, greatest, 0),
                  "its name differs from that of %s by case only: a resolver takes them for one host", least);
}

static void check_confusing(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    struct fab_key *keys = check_array(c, 2 * (size_t)inv->n_nodes, sizeof(*keys));
    uint32_t n = 0;
    for (uint32_t i = 0; keys != NULL && i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_HCA && !inv->nodes[i].unnamed)
            keys[n++] = (struct fab_key){folded_hash(fab_str(inv, inv->nodes[i].host)), i};
    if (n > 0)
        fab_radix_sort(keys, keys + n, n);
    for (uint32_t from = 0, to = 0; from < n; from = to) {
        const char *host = fab_str(inv, inv->nodes[keys[from].index].host);
        while (to < n && keys[to].value == keys[from].value)
            to++;
        add_case(c, keys + from, to - from);
        if (fab_host_is_address(host))
            check_add(c, FAB_CHECK_CONFUSING_NAME, check_at_name(host, host, 0),
                      "its name is an IP address: a resolver may assign that to another host");
    }
}

/* ---- names that two hosts may share ------------------------------------------------------------------ */

/* An HCA with its host and its description; later a host, which is compared with similar ones. */
struct described {
    const char *host, *desc;
    const struct fab_node *node;
    uint64_t stem;
    uint32_t first, n; /* the longest run of HCAs with the same description */
};

static int compare_described(const void *x, const void *y)
{
    const struct described *a = x, *b = y;
    return strcmp(a->host, b->host) ?: strcmp(a->desc, b->desc) ?: FAB_ORDER(a->node->guid, b->node->guid);
}

static int compare_stems(const void *x, const void *y)
{
    const struct described *a = x, *b = y;
    return FAB_ORDER(a->stem, b->stem) ?: strcmp(a->host, b->host);
}

/* Return whether its host reports this HCA. */
static bool is_reported(const struct check *c, const struct fab_node *node)
{
    for (uint32_t p = node->first_port; c->details != NULL && p < node->first_port + node->n_ports; p++)
        if ((c->details->seen[p] & FAB_SEEN_NODE) != 0)
            return true;
    return false;
}

static uint32_t list_described(struct check *c, struct described *list)
{
    const struct fab_inventory *inv = c->inv;
    uint32_t n = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        const char *host = fab_str(inv, node->host), *desc = fab_str(inv, node->desc);
        if (node->kind == FAB_HCA && !node->missing && !node->unnamed && !fab_host_is_local(host) &&
            desc[0] != '\0' && !is_reported(c, node))
            list[n++] = (struct described){.host = host, .desc = desc, .node = node};
    }
    qsort(list, n, sizeof(*list), compare_described);
    return n;
}

/*
 * List each host once, with the longest run of its HCAs that have the same description; return the number of
 * hosts.
 */
static uint32_t check_list_hosts(const struct described *list, uint32_t n, struct described *hosts)
{
    uint32_t n_hosts = 0;
    for (uint32_t from = 0, to = 0; from < n; from = to) {
        while (to < n && strcmp(list[from].host, list[to].host) == 0 &&
               strcmp(list[from].desc, list[to].desc) == 0)
            to++;
        if (n_hosts == 0 || strcmp(hosts[n_hosts - 1].host, list[from].host) != 0) {
            hosts[n_hosts] = list[from];
            hosts[n_hosts++].stem = check_stem(list[from].host);
        }
        struct described *host = &hosts[n_hosts - 1];
        if (to - from > host->n) {
            host->first = from;
            host->n = to - from;
        }
    }
    qsort(hosts, n_hosts, sizeof(*hosts), compare_stems);
    return n_hosts;
}

static void add_described(struct check *c, const struct described *host, const struct described *same)
{
    char guids[GUIDS_TEXT] = "";
    if (strcmp(fab_str(c->inv, same[0].node->name), fab_str(c->inv, same[1].node->name)) == 0)
        return; /* this is reported already */
    for (uint32_t i = 0; i < host->n && i < NAMED; i++)
        append_guid(guids, same[i].node);
    check_add(c, FAB_CHECK_DUPLICATE_NAME, check_at_name(host->host, host->host, host->n),
              "%u devices have only this name as their description: %s%s; check that all belong to one host",
              host->n, guids, host->n > NAMED ? ", ..." : "");
}

/*
 * Check descriptions without a device name: two HCAs of one host have the same one, and so do two hosts of
 * one name. If all similar hosts have equally many, they are built that way.
 */
static void check_described(struct check *c)
{
    struct described *list = check_array(c, c->inv->n_nodes, sizeof(*list));
    struct described *hosts = check_array(c, c->inv->n_nodes, sizeof(*hosts));
    uint32_t n = list == NULL || hosts == NULL ? 0 : check_list_hosts(list, list_described(c, list), hosts);
    for (uint32_t from = 0, to = 0; from < n; from = to) {
        uint32_t least = UINT32_MAX;
        for (; to < n && hosts[to].stem == hosts[from].stem; to++)
            least = hosts[to].n < least ? hosts[to].n : least;
        for (uint32_t i = from; i < to; i++)
            if (hosts[i].n > least)
                add_described(c, &hosts[i], list + hosts[i].first);
    }
}

int fab_check_plane_name(const struct fab_inventory *inv, const char *plane, struct fab_findings *out)
{
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_HCA && strcmp(fab_str(inv, inv->nodes[i].host), plane) == 0)
            return fab_findings_add(
                out, FAB_CHECK_SAME_NAME, fab_about_text(plane), plane,
                "a host and a plane have this name: exports use it for the top of the plane");
    return PMIXFAB_OK;
}

/*
 * ---- devices that two hosts claim: one claim is wrong, and no sweep shows which one
 * ------------------------
 */

#define MOST 256 /* claims compared; with more, a few hosts send false ones, which are reported by then */

/* A GUID or MAC that a device reports as its own, as another host's does. */
struct claim {
    uint32_t node;
    enum fab_fact kind;
    const char *text;
};

static bool is_same_claim(const struct claim *a, const struct claim *b)
{
    return a->kind == b->kind && strcmp(a->text, b->text) == 0;
}

/* List the claims that stand, or those that yielded to another host's, each once. Return their number. */
static uint32_t list_claims(const struct check *c, bool yielded, struct claim list[MOST])
{
    const struct fab_details *details = c->details;
    const unsigned disputed = FAB_DETAIL_CHOSEN | FAB_DETAIL_CONFLICT;
    uint32_t n = 0;
    for (uint32_t p = 0; p < c->inv->n_ports; p++)
        for (uint32_t f = details->first[p]; f < details->first[p + 1] && n < MOST; f++) {
            const struct fab_detail *fact = &details->facts[f];
            const struct claim claim = {c->inv->ports[p].node, fact->kind, details->pool + fact->text};
            if ((fact->kind != FAB_FACT_NODE_GUID && fact->kind != FAB_FACT_MAC) ||
                (fact->flags & disputed) != disputed ||
                ((fact->flags & FAB_DETAIL_OUTRANKED) != 0) != yielded)
                continue;
            if (n == 0 || list[n - 1].node != claim.node || !is_same_claim(&list[n - 1], &claim))
                list[n++] = claim; /* else it is another port of the same node */
        }
    return n;
}

static const char *claim_host_name(const struct check *c, const struct claim *claim)
{
    return fab_str(c->inv, c->inv->nodes[claim->node].host);
}

/* Return the same claim of another host in the list, or NULL. */
static const struct claim *find_claim(const struct check *c, const struct claim *list, uint32_t n,
                                      const struct claim *as)
{
    for (uint32_t i = 0; i < n; i++)
        if (is_same_claim(&list[i], as) && strcmp(claim_host_name(c, &list[i]), claim_host_name(c, as)) != 0)
            return &list[i];
    return NULL;
}

/* Return the unnamed node of the sweep with this GUID, or FAB_NONE. */
static uint32_t unclaimed_node(const struct check *c, const struct claim *claim)
{
    const uint32_t node = claim->kind != FAB_FACT_NODE_GUID
                              ? FAB_NONE
                              : fab_inventory_find(c->inv, strtoull(claim->text, NULL, 16));
    return node == FAB_NONE || !c->inv->nodes[node].unnamed ? FAB_NONE : node;
}

/* Report a device that belongs to no host. Each host that claims it is reported with the first one. */
static void add_open_claim(struct check *c, const struct claim *claim, const struct claim *first)
{
    const uint32_t node = unclaimed_node(c, claim);
    if (node == FAB_NONE || (first == NULL && node == claim->node))
        return;
    struct check_at at = check_at_node(c->inv, node, 0);
    at.about.text = claim_host_name(c, claim);
    if (first != NULL)
        check_add(c, FAB_CHECK_CLAIMED_TWICE, at,
                  "%.100s and %.100s both report it as their own (%s %.40s); it belongs to neither until one "
                  "of them stops or the device's name contains its host",
                  claim_host_name(c, first), claim_host_name(c, claim), fab_fact_name(claim->kind),
                  claim->text);
    else
        check_add(c, FAB_CHECK_CLAIMED_TWICE, at,
                  "%.100s reports it as its own (%s %.40s), as others did again and again; it belongs to no "
                  "host until the claims stop changing or the device's name contains its host",
                  claim_host_name(c, claim), fab_fact_name(claim->kind), claim->text);
}

static void check_claims(struct check *c)
{
    struct claim *kept = c->details == NULL ? NULL : check_array(c, MOST, sizeof(*kept));
    struct claim *yielded = c->details == NULL ? NULL : check_array(c, MOST, sizeof(*yielded));
    if (kept == NULL || yielded == NULL)
        return;
    const uint32_t n_kept = list_claims(c, false, kept), n_yielded = list_claims(c, true, yielded);
    for (uint32_t i = 0; i < n_yielded; i++) {
        const char *host, *other = claim_host_name(c, &yielded[i]);
        const struct claim *has = find_claim(c, kept, n_kept, &yielded[i]);
        if (has == NULL) { /* the first claimant is reported with the others */
            const struct claim *first = find_claim(c, yielded, i, &yielded[i]);
            if (first != NULL || find_claim(c, yielded, n_yielded, &yielded[i]) == NULL)
                add_open_claim(c, &yielded[i], first);
            continue;
        }
        host = claim_host_name(c, has);
        struct check_at at = check_at_node(c->inv, has->node, 0);
        at.about.text = other;
        check_add(
            c, FAB_CHECK_CLAIMED_TWICE, at,
            "%.100s and %.100s both report it as their own (%s %.40s); it belongs to %.100s, the first one",
            host, other, fab_fact_name(has->kind), has->text, host);
    }
}

void check_names(struct check *c)
{
    check_host_names(c);
    check_described(c);
    check_unnamed(c);
    check_confusing(c);
    check_claims(c);
}
