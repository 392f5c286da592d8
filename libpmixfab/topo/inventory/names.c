/* names.c - hosts and devices from node descriptions. */
#include "topo/inventory/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"
#include "topo/base/text.h"
#include "topo/inventory/names_priv.h"

#define DESC_MAX      64 /* bytes of an InfiniBand node description; what is longer is not looked at */
#define NAME_MAX_SIZE 256
#define NOT_IN_HOSTS  ",;:" /* PMIX_FABRIC_GROUPS and `host:device` separate by them */

/* What a text says: pieces of it. */
struct split {
    const char *host, *device; /* device NULL: none said */
    size_t host_len, device_len;
};

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool name_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
    return is_lower(c) || name_is_digit(c) || (c >= 'A' && c <= 'Z');
}

static size_t count_digits(const char *s)
{
    size_t n = 0;
    while (name_is_digit(s[n]))
        n++;
    return n;
}

/* HCA-[0-9]+ or [a-z][a-z0-9]*_[a-z0-9_]*[0-9]+, to the end of the text. */
static bool name_is_device(const char *s)
{
    if (strncmp(s, "HCA-", 4) == 0) {
        size_t digits = count_digits(s + 4);
        return digits > 0 && s[4 + digits] == '\0';
    }
    if (!is_lower(s[0]))
        return false;
    size_t n = 0;
    while (is_lower(s[n]) || name_is_digit(s[n]))
        n++;
    if (s[n] != '_')
        return false;
    while (is_lower(s[n]) || name_is_digit(s[n]) || s[n] == '_')
        n++;
    return s[n] == '\0' && name_is_digit(s[n - 1]);
}

/* FAB_NAMES_PATTERN by hand: regexec() takes a microsecond for each name, which is most of naming a fabric.
 */
static bool match_default(const char *text, struct split *out)
{
    size_t n = 0;

    if (!is_alnum(text[0]))
        return false;
    while (is_alnum(text[n]) || text[n] == '.' || text[n] == '_' || text[n] == '-')
        n++;
    *out = (struct split){.host = text, .host_len = n};
    if (text[n] == '\0')
        return true;
    size_t gap = strspn(text + n, " ");
    if (gap == 0 || !name_is_device(text + n + gap))
        return false;
    out->device = text + n + gap;
    out->device_len = strlen(out->device);
    return true;
}

/* "MT4123", "MT25408": what an HCA calls itself until its host gives it a name. */
static bool is_factory_name(const struct split *s)
{
    if (s->device != NULL || s->host_len < 6 || strncmp(s->host, "MT", 2) != 0)
        return false;
    return count_digits(s->host + 2) == s->host_len - 2;
}

static bool match_regex(const struct fab_names *names, const char *text, struct split *out)
{
    regmatch_t groups[10];
    size_t n = names->device_group + 1 > 2 ? names->device_group + 1 : 2;

    if (n > sizeof(groups) / sizeof(groups[0]) || regexec(&names->regex, text, n, groups, 0) != 0)
        return false;
    if (groups[1].rm_so < 0 || groups[1].rm_eo <= groups[1].rm_so)
        return false;
    *out = (struct split){.host = text + groups[1].rm_so,
                          .host_len = (size_t)(groups[1].rm_eo - groups[1].rm_so)};
    const regmatch_t *device = &groups[names->device_group];
    if (names->device_group != 0 && device->rm_so >= 0 && device->rm_eo > device->rm_so) {
        out->device = text + device->rm_so;
        out->device_len = (size_t)(device->rm_eo - device->rm_so);
    }
    return true;
}

/* `text` ends within DESC_MAX bytes; *out points into it. */
static bool split_text(const struct fab_names *names, const char *text, struct split *out)
{
    if (names->compiled)
        return match_regex(names, text, out);
    return match_default(text, out) && !is_factory_name(out);
}

int fab_names_new(const char *pattern, struct fab_names **out, struct fab_err *err)
{
    char reason[160];

    *out = NULL;
    struct fab_names *names = calloc(1, sizeof(*names));
    if (names == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    if (pattern != NULL && strcmp(pattern, FAB_NAMES_PATTERN) != 0) {
        int rc = regcomp(&names->regex, pattern, REG_EXTENDED);
        if (rc != 0) {
            regerror(rc, &names->regex, reason, sizeof(reason));
            free(names);
            return fab_fail(err, PMIXFAB_ERR_SYNTAX, "host pattern \"%s\": %s", pattern, reason);
        }
        names->compiled = true;
        if (names->regex.re_nsub < 1 || names->regex.re_nsub > 9) {
            fab_names_free(names);
            return fab_fail(
                err, PMIXFAB_ERR_SYNTAX,
                "host pattern \"%s\": put the part that is the host in parentheses (1 to 9 groups)", pattern);
        }
        names->device_group = names->regex.re_nsub > 1 ? (unsigned)names->regex.re_nsub : 0;
    }
    *out = names;
    return 0;
}

void fab_names_free(struct fab_names *names)
{
    if (names == NULL)
        return;
    if (names->compiled)
        regfree(&names->regex);
    for (uint32_t i = 0; i < names->n_map; i++)
        free(names->map[i].name);
    free(names->map);
    free(names);
}

/* Clean a piece of text into the inventory's pool. */
static int set_string(struct fab_inventory *inv, uint32_t *field, const char *text, size_t len,
                      const char *also)
{
    char clean[NAME_MAX_SIZE];
    size_t n = fab_text_clean(clean, sizeof(clean), text, len, also);
    *field = fab_inventory_string(inv, clean, n);
    return *field == FAB_NONE ? PMIXFAB_ERR_NOMEM : 0;
}

static int name_hca(const struct fab_names *names, struct fab_inventory *inv, struct fab_node *node)
{
    /* a copy: the pool moves when a string is added */
    char text[NAME_MAX_SIZE], guid[24];
    const char *mapped = fab_names_mapped(names, node->guid);
    struct split s = {0};

    if (mapped != NULL) {
        snprintf(text, sizeof(text), "%s", mapped);
        if (strlen(text) > DESC_MAX || strpbrk(text, " \t") == NULL || !split_text(names, text, &s))
            s = (struct split){.host = text, .host_len = strlen(text)};
    } else {
        snprintf(text, DESC_MAX + 1, "%s", fab_str(inv, node->desc));
        if (!split_text(names, text, &s)) {
            int n = snprintf(guid, sizeof(guid), "0x%016" PRIx64, node->guid);
            s = (struct split){.host = guid, .host_len = (size_t)n};
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
    char text[NAME_MAX_SIZE];
    const char *mapped = fab_names_mapped(names, node->guid);

    snprintf(text, sizeof(text), "%s", mapped != NULL ? mapped : fab_str(inv, node->desc));
    if (text[strspn(text, " ")] == '\0')
        snprintf(text, sizeof(text), "0x%016" PRIx64, node->guid);
    return set_string(inv, &node->name, text, strlen(text), NULL);
}

/* An HCA on its way to a device name. */
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

/* The n of a device called HCA-n, 0 where it is called otherwise or n is beyond `most`. */
static uint32_t hca_number(const char *name, uint32_t most)
{
    if (strncmp(name, "HCA-", 4) != 0 || name[4] == '0' || strlen(name) > 13 ||
        count_digits(name + 4) != strlen(name + 4))
        return 0;
    unsigned long n = strtoul(name + 4, NULL, 10);
    return n > most ? 0 : (uint32_t)n;
}

/* The HCAs of one host: those without a device name get the first free HCA-n. `taken` has room for n + 1. */
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
    /* hosts are compared where they stand, while new strings move the pool: hence a pool of their own */
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
        rc = number_devices(inv);
    return rc == 0 ? 0
                   : fab_fail(err, rc, "naming %" PRIu32 " nodes: %s", inv->n_nodes, pmixfab_strerror(rc));
}
