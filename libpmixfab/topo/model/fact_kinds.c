/* fact_kinds.c - names of sources and of kinds of facts, and the form of each kind's text. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/cidr.h"
#include "topo/base/cpus.h"
#include "topo/base/text.h"
#include "topo/model/report.h"

#define HEX      "0123456789abcdef"
#define MAX_NAME 63

static const char *const sources[FAB_SOURCES] = {
    [FAB_FROM_SUBNET] = "subnet", [FAB_FROM_VERBS] = "verbs",         [FAB_FROM_HWLOC] = "hwloc",
    [FAB_FROM_UCX] = "ucx",       [FAB_FROM_LIBFABRIC] = "libfabric", [FAB_FROM_ETHERNET] = "ethernet",
    [FAB_FROM_LLDP] = "lldp",
};

const char *fab_source_name(enum fab_source source)
{
    return (size_t)source < FAB_SOURCES ? sources[source] : "?";
}

enum fab_source fab_source_parse(const char *name)
{
    for (unsigned i = 0; name != NULL && i < FAB_SOURCES; i++) {
        if (strcmp(sources[i], name) == 0)
            return (enum fab_source)i;
    }
    return FAB_SOURCES;
}

void fab_sources_text(uint32_t set, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < FAB_SOURCES && at < size; i++) {
        if ((set >> i & 1) != 0)
            at += (size_t)snprintf(out + at, size - at, "%s%s", at > 0 ? ", " : "", sources[i]);
    }
}

/* Return whether it is a decimal number as printf() writes it, low to high. */
static bool is_number(const char *text, uint64_t low, uint64_t high)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 10 || text[digits] != '\0' || (text[0] == '0' && digits > 1))
        return false;
    uint64_t value = strtoull(text, NULL, 10);
    return value >= low && value <= high;
}

/* Return whether it is one of some words, which are separated by blanks. */
static bool is_word(const char *text, const char *words)
{
    const size_t len = strlen(text);
    for (size_t n; *words != '\0'; words += n + (words[n] == ' ')) {
        n = strcspn(words, " ");
        if (n == len && memcmp(words, text, n) == 0)
            return true;
    }
    return false;
}

/* Return whether it has a given shape, where "h" stands for any hexadecimal digit. */
static bool has_shape(const char *text, const char *shape)
{
    for (; *shape != '\0'; text++, shape++)
        if (*shape == 'h' ? *text == '\0' || strchr(HEX, *text) == NULL : *text != *shape)
            return false;
    return *text == '\0';
}

static bool is_name(const char *text)
{
    return strlen(text) <= MAX_NAME;
}

static bool is_guid(const char *text)
{
    return has_shape(text, "0xhhhhhhhhhhhhhhhh") && strspn(text + 2, "0") < 16;
}

static bool is_mac(const char *text)
{
    return has_shape(text, "hh:hh:hh:hh:hh:hh") && strspn(text, "0:") < 17;
}

/* Check domain, bus, device, function. A domain of more than 16 bits has no leading zeros. */
static bool is_pci(const char *text)
{
    const size_t domain = strspn(text, HEX);
    const char *at = text + domain; /* ":c1:00:01" */
    return domain >= 4 && domain <= 8 && (domain == 4 || text[0] != '0') && has_shape(at, ":hh:hh:hh") &&
           at[4] <= '1' && at[7] == '0' && at[8] >= '0' && at[8] <= '7';
}

static bool is_id(const char *text)
{
    return has_shape(text, "0xhhhh");
}

static bool is_gid(const char *text)
{
    static const unsigned char zero[16];
    unsigned char bytes[16];
    char canonical[INET6_ADDRSTRLEN];
    return inet_pton(AF_INET6, text, bytes) == 1 && memcmp(bytes, zero, 16) != 0 &&
           inet_ntop(AF_INET6, bytes, canonical, sizeof(canonical)) != NULL && strcmp(canonical, text) == 0;
}

static bool is_address(const char *text)
{
    char address[INET6_ADDRSTRLEN], canonical[INET6_ADDRSTRLEN + 8];
    struct fab_cidr cidr;
    if (!fab_cidr_parse(text, &cidr) ||
        inet_ntop(cidr.v6 ? AF_INET6 : AF_INET, cidr.bytes, address, sizeof(address)) == NULL)
        return false;
    snprintf(canonical, sizeof(canonical), "%s/%u", address, cidr.length);
    return strcmp(canonical, text) == 0;
}

/* Return whether it is a MAC, or a word for a kind of name and the name. */
static bool is_chassis(const char *text)
{
    size_t type = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
    return is_mac(text) || (type > 0 && text[type] == ' ' && text[type + 1] != '\0' && text[type + 1] != ' ');
}

static bool is_cpus(const char *text)
{
    char canonical[FAB_REPORT_MAX_TEXT + 1];
    struct fab_cpus cpus;
    return fab_cpus_parse(text, &cpus) && fab_cpus_text(&cpus, canonical, sizeof(canonical)) &&
           strcmp(canonical, text) == 0;
}

/* Forms: the text for messages, and the check: a function, a number, or a word. */
#define TEXT              "1 to 255 bytes of UTF-8 without control characters", NULL
#define NAME              "a name of 1 to 63 bytes without control characters", is_name
#define GUID              "0x and 16 lower-case hexadecimal digits, not all zero", is_guid
#define MAC               "a MAC as 00:21:5e:c4:86:1a, lower case, not all zero", is_mac
#define PCI               "a PCI address as 0000:c1:00:01, lower case", is_pci
#define ID                "0x and 4 lower-case hexadecimal digits", is_id
#define GID               "an IPv6 address in its short form, not all zero", is_gid
#define ADDRESS           "an IP address and a length as 10.91.0.2/16", is_address
#define CHASSIS           "a MAC in lower case, or a word, a blank and a name", is_chassis
#define CPUS              "numbers of processors, as 0-11,24-35 or 0-14:2", is_cpus
#define COUNT             "a decimal number below 2^32", NULL, .high = UINT32_MAX
#define POSITIVE          "a decimal number from 1 to below 2^32", NULL, .low = 1, .high = UINT32_MAX
#define TO(most)          "a decimal number from 1 to " #most, NULL, .low = 1, .high = (most)
#define WORDS(says, list) says, NULL, .words = (list)

static const struct kind {
    const char *name, *form;
    bool (*is)(const char *text);
    uint32_t low, high;
    const char *words;
    bool many;
} kinds[FAB_FACTS] = {
    [FAB_FACT_NAME] = {"name", NAME},
    [FAB_FACT_PORT] = {"port", TO(254)},
    [FAB_FACT_INTERFACE] = {"interface", NAME},
    [FAB_FACT_NODE_GUID] = {"node-guid", GUID},
    [FAB_FACT_SYSTEM_GUID] = {"system-guid", GUID},
    [FAB_FACT_PORT_GUID] = {"port-guid", GUID},
    [FAB_FACT_MAC] = {"mac", MAC},
    [FAB_FACT_PCI] = {"pci", PCI},
    [FAB_FACT_BUS] = {"bus", TEXT},
    [FAB_FACT_VENDOR] = {"vendor", TEXT},
    [FAB_FACT_VENDOR_ID] = {"vendor-id", ID},
    [FAB_FACT_PART] = {"part", TEXT},
    [FAB_FACT_PART_ID] = {"part-id", ID},
    [FAB_FACT_DRIVER] = {"driver", TEXT},
    [FAB_FACT_FIRMWARE] = {"firmware", TEXT},
    [FAB_FACT_TYPE] = {"type", WORDS("InfiniBand or Ethernet", "InfiniBand Ethernet")},
    [FAB_FACT_STATE] = {"state", WORDS("up, down or unknown", "up down unknown")},
    [FAB_FACT_MTU] = {"mtu", POSITIVE},
    [FAB_FACT_SPEED] = {"speed", POSITIVE},
    [FAB_FACT_LID] = {"lid", TO(65535)},
    [FAB_FACT_GID] = {"gid", GID, .many = true},
    [FAB_FACT_ADDRESS] = {"address", ADDRESS, .many = true},
    [FAB_FACT_NUMA] = {"numa", COUNT},
    [FAB_FACT_PACKAGE] = {"package", COUNT},
    [FAB_FACT_SWITCH] = {"switch", PCI},
    [FAB_FACT_SLOT_SPEED] = {"slot-speed", COUNT},
    [FAB_FACT_PROVIDER] = {"provider", TEXT, .many = true},
    [FAB_FACT_PROTOCOL] = {"protocol", TEXT, .many = true},
    [FAB_FACT_TRANSPORT] = {"transport", TEXT, .many = true},
    [FAB_FACT_BANDWIDTH] = {"bandwidth", COUNT},
    [FAB_FACT_LATENCY] = {"latency", COUNT},
    [FAB_FACT_SWITCH_ID] = {"switch-id", CHASSIS},
    [FAB_FACT_SWITCH_NAME] = {"switch-name", TEXT},
    [FAB_FACT_SWITCH_PORT] = {"switch-port", TEXT},
    [FAB_FACT_SOFTWARE] = {"software", WORDS("yes", "yes")},
    [FAB_FACT_CPUS] = {"cpus", CPUS},
    [FAB_FACT_PACKAGE_CPUS] = {"package-cpus", CPUS},
};

const char *fab_fact_name(enum fab_fact kind)
{
    return (size_t)kind < FAB_FACTS ? kinds[kind].name : NULL;
}

enum fab_fact fab_fact_parse(const char *name)
{
    for (unsigned i = 1; name != NULL && i < FAB_FACTS; i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return (enum fab_fact)i;
    }
    return 0;
}

bool fab_fact_many(enum fab_fact kind)
{
    return (size_t)kind < FAB_FACTS && kinds[kind].many;
}

static bool has_form(const struct kind *kind, const char *text)
{
    return (kind->is == NULL || kind->is(text)) &&
           (kind->high == 0 || is_number(text, kind->low, kind->high)) &&
           (kind->words == NULL || is_word(text, kind->words));
}

int fab_fact_check(enum fab_fact kind, const char *text, struct fab_err *err)
{
    if (fab_fact_name(kind) == NULL)
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "there is no kind %d of facts", (int)kind);
    size_t len = strlen(text);
    if (len == 0 || len > FAB_REPORT_MAX_TEXT || !fab_text_is_utf8(text, len) ||
        !has_form(&kinds[kind], text))
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "\"%.60s\" is not in the form of the fact %s: %s", text,
                        kinds[kind].name, kinds[kind].form);
    return PMIXFAB_OK;
}
