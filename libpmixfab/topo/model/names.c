/* names.c - hosts and devices, from node descriptions and names of a map; which hosts a name means. */
#include "topo/model/names.h"

#include <arpa/inet.h>
#include <ctype.h>
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

/* What a text says: pieces of it. */
struct names_split {
    const char *host, *device; /* device NULL: none said */
    size_t host_len, device_len;
};

/* ---- which hosts are meant ------------------------------------------------------------------------- */

bool fab_same_host(const char *a, const char *b)
{
    size_t in_a = strcspn(a, "."), in_b = strcspn(b, ".");
    if (strcmp(a, b) == 0)
        return true;
    /* node1 and node1.cluster are one, node1.here and node1.there are two */
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

/* ---- descriptions ---------------------------------------------------------------------------------- */

#define DIGITS "0123456789"
#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* A device that udev has named by its GUID, "ibx98039b03000a1b2c": [a-z]+x[0-9a-f]{12,16}. It may end with a
 * letter. */
static bool is_called_by_guid(const char *s)
{
    const char *x = strrchr(s, 'x'); /* no digit */
    if (x == NULL || x == s || s + strspn(s, LOWER) < x)
        return false;
    const size_t digits = strspn(x + 1, DIGITS "abcdef");
    return digits >= 12 && digits <= 16 && x[1 + digits] == '\0';
}

/* HCA-[0-9]+, [a-z][a-z0-9_]*[0-9], or by a GUID, to the end of the text. */
static bool name_is_device(const char *s)
{
    if (strncmp(s, "HCA-", 4) == 0) {
        size_t digits = strspn(s + 4, DIGITS);
        return digits > 0 && s[4 + digits] == '\0';
    }
    const size_t n = strspn(s, LOWER DIGITS "_");
    return n > 0 && s[n] == '\0' && strspn(s, LOWER) > 0 &&
           (strspn(s + n - 1, DIGITS) > 0 || is_called_by_guid(s));
}

/* FAB_NAMES_PATTERN by hand: regexec() takes a microsecond for each name, which is most of naming a fabric.
 */
static bool match_default(const char *text, struct names_split *out)
{
    const size_t n = strspn(text, LOWER UPPER DIGITS "._-");
    if (!isalnum((unsigned char)text[0]))
        return false;
    *out = (struct names_split){.host = text, .host_len = n};
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
static bool is_factory_name(const struct names_split *s)
{
    if (s->device != NULL || s->host_len < 6 || strncmp(s->host, "MT", 2) != 0)
        return false;
    return strspn(s->host + 2, DIGITS) == s->host_len - 2;
}

static bool has_group(const regmatch_t *group)
{
    return group->rm_so >= 0 && group->rm_eo > group->rm_so;
}

static bool match_regex(const struct fab_pattern *pattern, const char *text, struct names_split *out)
{
    regmatch_t groups[NAMES_GROUPS];
    const size_t last = pattern->regex.re_nsub;

    if (regexec(&pattern->regex, text, NAMES_GROUPS, groups, 0) != 0 || !has_group(&groups[1]))
        return false;
    *out = (struct names_split){.host = text + groups[1].rm_so,
                                .host_len = (size_t)(groups[1].rm_eo - groups[1].rm_so)};
    if (last > 1 && has_group(&groups[last])) {
        out->device = text + groups[last].rm_so;
        out->device_len = (size_t)(groups[last].rm_eo - groups[last].rm_so);
    }
    return true;
}

/* False: the text names nobody. It ends within NAMES_DESC_MAX bytes; *out points into it. */
static bool names_split_text(const struct fab_names *names, const char *text, struct names_split *out)
{
    if (names->hosts.compiled)
        return match_regex(&names->hosts, text, out);
    return match_default(text, out) && !is_factory_name(out);
}

/* ---- switches -------------------------------------------------------------------------------------- */

/* "MF0;NAME:MODEL/U1" is NAME, and "MF0;NAME:MODEL/L04/U1", a chip of a director, NAME/L04/U1. */
static bool switch_default(const char *desc, char out[NAMES_MAX_SIZE])
{
    if (strncmp(desc, "MF0;", 4) != 0)
        return false;
    const char *name = desc + 4, *chip = strchr(name, '/');
    const char *colon = chip == NULL ? NULL : memrchr(name, ':', (size_t)(chip - name));
    if (colon == NULL || colon == name)
        return false;
    size_t len = (size_t)(colon - name);
    name = fab_text_trim(name, &len);
    snprintf(out, NAMES_MAX_SIZE, "%.*s%s", (int)len, name, strcmp(chip, "/U1") == 0 ? "" : chip);
    return len > 0;
}

/* The groups that match, one after the other. */
static bool switch_regex(const struct fab_pattern *pattern, const char *desc, char out[NAMES_MAX_SIZE])
{
    regmatch_t groups[NAMES_GROUPS];
    char text[NAMES_DESC_MAX + 1];
    size_t n = 0;

    snprintf(text, sizeof(text), "%.*s", NAMES_DESC_MAX, desc);
    out[0] = '\0';
    if (regexec(&pattern->regex, text, NAMES_GROUPS, groups, 0) != 0)
        return false;
    for (size_t i = 1; i <= pattern->regex.re_nsub; i++)
        if (has_group(&groups[i]) && n + NAMES_DESC_MAX < NAMES_MAX_SIZE)
            n += (size_t)snprintf(out + n, NAMES_MAX_SIZE - n, "%.*s",
                                  (int)(groups[i].rm_eo - groups[i].rm_so), text + groups[i].rm_so);
    return n > 0;
}

/* What a switch is called that describes itself so. */
static void names_switch_text(const struct fab_names *names, const char *desc, char out[NAMES_MAX_SIZE])
{
    const struct fab_pattern *own = &names->switches;
    if (!(own->compiled ? switch_regex(own, desc, out) : switch_default(desc, out)))
        snprintf(out, NAMES_MAX_SIZE, "%s", desc);
}

/* ---- patterns --------------------------------------------------------------------------------------- */

/* whose, and what is to be in parentheses: for the message. */
static int pattern_compile(struct fab_pattern *out, const char *pattern, const char *whose, const char *what,
                           struct fab_err *err)
{
    char reason[160];
    int rc = regcomp(&out->regex, pattern, REG_EXTENDED);
    if (rc != 0) {
        regerror(rc, &out->regex, reason, sizeof(reason));
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "%s pattern \"%s\": %s", whose, pattern, reason);
    }
    if (out->regex.re_nsub < 1 || out->regex.re_nsub >= NAMES_GROUPS) {
        regfree(&out->regex);
        return fab_fail(err, PMIXFAB_ERR_SYNTAX,
                        "%s pattern \"%s\": put the part that is the %s in parentheses (1 to 9 groups)",
                        whose, pattern, what);
    }
    out->compiled = true;
    return PMIXFAB_OK;
}

int fab_names_switches(struct fab_names *names, const char *pattern, struct fab_err *err)
{
    return pattern == NULL ? PMIXFAB_OK : pattern_compile(&names->switches, pattern, "switch", "name", err);
}

int fab_names_new(const char *pattern, struct fab_names **out, struct fab_err *err)
{
    *out = NULL;
    struct fab_names *names = calloc(1, sizeof(*names));
    if (names == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    int rc = pattern == NULL || strcmp(pattern, FAB_NAMES_PATTERN) == 0
                 ? PMIXFAB_OK
                 : pattern_compile(&names->hosts, pattern, "host", "host", err);
    if (rc == PMIXFAB_OK)
        *out = names;
    else
        free(names);
    return rc;
}

void fab_names_free(struct fab_names *names)
{
    if (names == NULL)
        return;
    if (names->hosts.compiled)
        regfree(&names->hosts.regex);
    if (names->switches.compiled)
        regfree(&names->switches.regex);
    for (uint32_t i = 0; i < names->n_map; i++)
        free(names->map[i].name);
    free(names->map);
    free(names);
}

/* ---- mapped names ---------------------------------------------------------------------------------- */

/*
 * Mapped names of several words: "node7 mlx5_0", "node7 MT4119 ConnectX5", "login 1".
 *
 * What the pattern fits is a host and a device. Of other names the host is the first word, as other readers
 * of these maps take it. It is all of the name where the first word is not a host's by itself: it has no
 * digit, and a number comes behind it ("login 1"), or another name of the map begins so and goes on
 * otherwise.
 */
#define BLANKS " \t"

static bool fits_pattern(const struct fab_names *names, const char *text, struct names_split *out)
{
    return strlen(text) <= NAMES_DESC_MAX && strpbrk(text, BLANKS) != NULL &&
           names_split_text(names, text, out);
}

static size_t first_word(const char *name)
{
    return strcspn(name, BLANKS);
}

static const char *behind_first_word(const char *name)
{
    name += first_word(name);
    return name + strspn(name, BLANKS);
}

/* May the first word be a host's name? */
static bool begins_with_host(const char *name)
{
    const size_t len = first_word(name);
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && (i == 0 || strchr("._-", name[i]) == NULL))
            return false;
    return true;
}

/* "1", "rack 7": is one of the words a number? */
static bool has_number(const char *words)
{
    while (*words != '\0') {
        const size_t len = first_word(words);
        if (len > 0 && strspn(words, "0123456789") == len)
            return true;
        words = behind_first_word(words);
    }
    return false;
}

static int compare_names(const void *a, const void *b)
{
    const struct fab_map_entry *x = *(struct fab_map_entry *const *)a, *y = *(struct fab_map_entry *const *)b;
    const size_t in_x = first_word(x->name), in_y = first_word(y->name);
    return memcmp(x->name, y->name, in_x < in_y ? in_x : in_y) ?: (in_x > in_y) - (in_x < in_y);
}

int names_first_words(struct fab_names *names)
{
    struct fab_map_entry **order = malloc(((size_t)names->n_map + 1) * sizeof(*order));
    uint32_t n = 0;
    if (order == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < names->n_map; i++) {
        struct fab_map_entry *entry = &names->map[i];
        struct names_split split;
        entry->whole = false;
        if (strpbrk(entry->name, BLANKS) == NULL || fits_pattern(names, entry->name, &split))
            continue;
        entry->whole = !begins_with_host(entry->name);
        if (strcspn(entry->name, "0123456789") > first_word(entry->name)) /* "node7" is a host's by itself */
            order[n++] = entry;
    }
    qsort(order, n, sizeof(struct fab_map_entry *), compare_names);
    for (uint32_t from = 0, to = 0; from < n; from = to) {
        const char *rest = behind_first_word(order[from]->name);
        bool whole = has_number(rest);
        for (; to < n && compare_names(&order[from], &order[to]) == 0; to++)
            whole = whole || strcmp(behind_first_word(order[to]->name), rest) != 0;
        for (uint32_t i = from; i < to; i++)
            order[i]->whole = order[i]->whole || whole;
    }
    free(order);
    return PMIXFAB_OK;
}

/* What a mapped name of an HCA says. *out points into text, which is changed. */
static void names_split_mapped(const struct fab_names *names, const struct fab_map_entry *entry,
                               char text[NAMES_MAX_SIZE], struct names_split *out)
{
    snprintf(text, NAMES_MAX_SIZE, "%s", entry->name);
    if (fits_pattern(names, text, out))
        return;
    if (!entry->whole) {
        const char *rest = behind_first_word(text);
        text[(size_t)(rest - text) + first_word(rest)] = '\0'; /* "node7 mlx5_0 (spare)" */
        if (fits_pattern(names, text, out))
            return;
        text[first_word(text)] = '\0';
    }
    *out = (struct names_split){.host = text, .host_len = strlen(text)};
}

/* ---- nodes ------------------------------------------------------------------------------------------ */

#define NOT_IN_HOSTS ",;:" /* PMIX_FABRIC_GROUPS and `host:device` separate by them */

/* Clean a piece of text into the inventory's pool. */
static int set_string(struct fab_inventory *inv, uint32_t *field, const char *text, size_t len,
                      const char *also)
{
    char clean[NAMES_MAX_SIZE];
    size_t n = fab_text_clean(clean, sizeof(clean), text, len, also);
    *field = fab_inventory_string(inv, clean, n);
    return *field == FAB_NONE ? PMIXFAB_ERR_NOMEM : 0;
}

/* A copy, because the pool moves when a string is added; of a database of before it may have blanks around.
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
        strspn(name + 4, DIGITS) != strlen(name + 4))
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
        rc = number_devices(inv) ?: fab_inventory_mark_names(inv);
    return rc == 0 ? 0
                   : fab_fail(err, rc, "naming %" PRIu32 " nodes: %s", inv->n_nodes, pmixfab_strerror(rc));
}
