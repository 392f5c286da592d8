/* names.c - name hosts and devices by node descriptions and maps; find the hosts that a name means. */
#include "topo/model/names.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/base/text.h"
#include "topo/model/host_name.h"
#include "topo/model/names_priv.h"

/* ---- hosts that a name means -------------------------------------------------------------------------- */

bool fab_same_host(const char *a, const char *b)
{
    size_t in_a = strcspn(a, "."), in_b = strcspn(b, ".");
    if (strcmp(a, b) == 0)
        return true;
    /* node1 and node1.cluster are one host, node1.here and node1.there are two */
    return in_a > 0 && in_a == in_b && memcmp(a, b, in_a) == 0 && (a[in_a] == '\0' || b[in_b] == '\0');
}

bool fab_host_differs_by_case(const char *a, const char *b)
{
    size_t in_a = strcspn(a, "."), in_b = strcspn(b, ".");
    if (strcasecmp(a, b) == 0)
        return strcmp(a, b) != 0;
    return in_a > 0 && in_a == in_b && strncasecmp(a, b, in_a) == 0 && (a[in_a] == '\0' || b[in_b] == '\0') &&
           memcmp(a, b, in_a) != 0;
}

bool fab_host_is_address(const char *host)
{
    struct in_addr address;
    return inet_aton(host, &address) != 0;
}

bool fab_host_is_local(const char *host)
{
    return strncmp(host, "localhost", 9) == 0 && (host[9] == '\0' || host[9] == '.');
}

void fab_choose_host(struct fab_host_choice *choice, const char *name, const char *host)
{
    if (choice->exact || (choice->host != NULL && strcmp(choice->host, host) == 0) ||
        !fab_same_host(host, name))
        return;
    choice->exact = strcmp(host, name) == 0;
    choice->several = choice->host != NULL && !choice->exact;
    if (choice->host == NULL || choice->exact || fab_natural_cmp(host, choice->host) < 0)
        choice->host = host;
}

/* ---- nodes ----------------------------------------------------------------------------------------- */

#define NOT_IN_HOSTS ",;:" /* separators of PMIX_FABRIC_GROUPS and `host:device` */

/* Clean a text and add it to the inventory's pool. */
static int set_string(struct fab_inventory *inv, uint32_t *field, const char *text, size_t len,
                      const char *also)
{
    char clean[NAMES_MAX_SIZE];
    size_t n = fab_text_clean(clean, sizeof(clean), text, len, also);
    *field = fab_inventory_string(inv, clean, n);
    return *field == FAB_NONE ? PMIXFAB_ERR_NOMEM : 0;
}

/*
 * Copy, because the pool moves when a string is added. A description from an old database may have blanks
 * around it.
 */
static void copy_desc(char text[NAMES_MAX_SIZE], const char *desc, size_t max)
{
    size_t len = strnlen(desc, max);
    desc = fab_text_trim(desc, &len);
    snprintf(text, NAMES_MAX_SIZE, "%.*s", (int)len, desc);
}

static int name_hca(const struct fab_names *names, struct fab_inventory *inv, struct fab_node *node)
{
    char text[NAMES_MAX_SIZE], guid[24];
    const struct fab_map_entry *mapped = fab_names_mapped(names, node->guid);
    const char *desc = fab_str(inv, node->desc);
    struct names_split s = {0};

    if (mapped != NULL) {
        names_split_mapped(names, mapped, text, &s);
    } else {
        copy_desc(text, desc, NAMES_DESC_MAX);
        if (!names_split_text(names, text, &s)) {
            int n = snprintf(guid, sizeof(guid), "0x%016" PRIx64, node->guid);
            s = (struct names_split){.host = guid, .host_len = (size_t)n};
            node->unnamed = 1;
        }
    }
    int rc = set_string(inv, &node->host, s.host, s.host_len, NOT_IN_HOSTS);
    if (rc == 0)
        rc = set_string(inv, &node->name, s.device == NULL ? "" : s.device, s.device_len, NULL);
    return rc;
}

static int name_other(const struct fab_names *names, struct fab_inventory *inv, struct fab_node *node)
{
    char text[NAMES_MAX_SIZE], desc[NAMES_MAX_SIZE];
    const struct fab_map_entry *mapped = fab_names_mapped(names, node->guid);

    copy_desc(desc, fab_str(inv, node->desc), NAMES_MAX_SIZE - 1);
    if (mapped != NULL || node->kind != FAB_SWITCH)
        snprintf(text, sizeof(text), "%s", mapped != NULL ? mapped->name : desc);
    else
        names_switch_text(names, desc, text);
    size_t len = strlen(text);
    const char *name = fab_text_trim(text, &len);
    if (len > 0)
        return set_string(inv, &node->name, name, len, NULL);
    snprintf(text, sizeof(text), "0x%016" PRIx64, node->guid);
    return set_string(inv, &node->name, text, strlen(text), NULL);
}

/* An HCA that gets a device name. */
struct hca {
    const char *host;
    uint64_t guid;
    uint32_t node;
};

static int compare_hcas(const void *a, const void *b)
{
    const struct hca *x = a, *y = b;
    return strcmp(x->host, y->host) ?: FAB_ORDER(x->guid, y->guid);
}

/* Return the n of a device called HCA-n; 0 if it has another name or n is beyond `most`. */
static uint32_t hca_number(const char *name, uint32_t most)
{
    if (strncmp(name, "HCA-", 4) != 0 || name[4] == '0' || strlen(name) > 13 ||
        strspn(name + 4, "0123456789") != strlen(name + 4))
        return 0;
    unsigned long n = strtoul(name + 4, NULL, 10);
    return n > most ? 0 : (uint32_t)n;
}

/*
 * Number the HCAs of one host: those without a device name get the first free HCA-n. `taken` has room for n +
 * 1.
 */
static int number_host(struct fab_inventory *inv, const struct hca *hcas, uint32_t n, bool *taken)
{
    char name[24];
    uint32_t next = 1;

    memset(taken, 0, ((size_t)n + 1) * sizeof(*taken));
    for (uint32_t i = 0; i < n; i++)
        taken[hca_number(fab_str(inv, inv->nodes[hcas[i].node].name), n)] = true;
    for (uint32_t i = 0; i < n; i++) {
        struct fab_node *node = &inv->nodes[hcas[i].node];
        if (node->name != 0)
            continue;
        while (next <= n && taken[next])
            next++;
        int len = snprintf(name, sizeof(name), "HCA-%" PRIu32, next++);
        node->name = fab_inventory_string(inv, name, (size_t)len);
        if (node->name == FAB_NONE)
            return PMIXFAB_ERR_NOMEM;
    }
    return 0;
}

static int number_devices(struct fab_inventory *inv)
{
    uint32_t n = 0, missing = 0;
    struct hca *hcas = malloc(((size_t)inv->n_nodes + 1) * sizeof(*hcas));
    bool *taken = malloc((size_t)inv->n_nodes + 2);
    /* hosts are compared in place while new strings move the pool: hence a separate copy */
    char *hosts = malloc((size_t)inv->pool_size + 1);
    int rc = hcas == NULL || taken == NULL || hosts == NULL ? PMIXFAB_ERR_NOMEM : 0;

    if (rc != 0)
        goto cleanup;
    hosts[0] = '\0';
    if (inv->pool_size > 0)
        memcpy(hosts, inv->pool, inv->pool_size);
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        if (node->kind != FAB_HCA)
            continue;
        hcas[n++] = (struct hca){hosts + node->host, node->guid, i};
        missing += node->name == 0;
    }
    if (missing == 0)
        goto cleanup;
    qsort(hcas, n, sizeof(*hcas), compare_hcas);
    for (uint32_t first = 0, end; first < n && rc == 0; first = end) {
        for (end = first + 1; end < n && strcmp(hcas[first].host, hcas[end].host) == 0;)
            end++;
        rc = number_host(inv, hcas + first, end - first, taken);
    }

cleanup:
    free(hcas);
    free(taken);
    free(hosts);
    return rc;
}

int fab_names_apply(const struct fab_names *names, struct fab_inventory *inv, struct fab_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; i < inv->n_nodes && rc == 0; i++) {
        struct fab_node *node = &inv->nodes[i];
        node->host = 0;
        node->name = 0;
        node->unnamed = 0;
        rc = node->kind == FAB_HCA ? name_hca(names, inv, node) : name_other(names, inv, node);
    }
    if (rc == 0)
        rc = number_devices(inv) ?: fab_inventory_mark_names(inv);
    return rc == 0 ? 0
                   : fab_fail(err, rc, "naming %" PRIu32 " nodes: %s", inv->n_nodes, pmixfab_strerror(rc));
}
