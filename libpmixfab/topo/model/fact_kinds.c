/* fact_kinds.c - names of sources and kinds of facts, and the form that each kind's text has. */
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

/* Decimal as printf() writes it, low to high. */
static bool is_number(const char *text, uint64_t low, uint64_t high)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 10 || text[digits] != '\0' || (text[0] == '0' && digits > 1))
        return false;
    uint64_t value = strtoull(text, NULL, 10);
    return value >= low && value <= high;
}

/* Exactly n hexadecimal digits; returns what is behind them, NULL: they are not there. */
static const char *skip_hex_digits(const char *text, size_t n)
{
    return text != NULL && strspn(text, HEX) >= n ? text + n : NULL;
}

static bool any_text(const char *text)
{
    (void)text;
    return true;
}

static bool is_name(const char *text)
{
    return strlen(text) <= MAX_NAME;
}

static bool is_port(const char *text)
{
    return is_number(text, 1, 254);
}

static bool is_guid(const char *text)
{
    return strncmp(text, "0x", 2) == 0 && strspn(text + 2, HEX) == 16 && text[18] == '\0' &&
           strspn(text + 2, "0") < 16;
}

static bool is_mac(const char *text)
{
    const char *at = text;
    for (int i = 0; at != NULL && i < 6; i++) {
        at = skip_hex_digits(at, 2);
        if (at != NULL && i < 5)
            at = *at == ':' ? at + 1 : NULL;
    }
    return at != NULL && *at == '\0' && strspn(text, "0:") < 17;
}

/* Domain, bus, device, function. A domain of more than 16 bits has no zeros in front. */
static bool is_pci(const char *text)
{
    size_t domain = strspn(text, HEX);
    if (domain < 4 || domain > 8 || (domain > 4 && text[0] == '0') || text[domain] != ':')
        return false;
    const char *bus = text + domain + 1, *at = skip_hex_digits(bus, 2);
    if (at == NULL || *at != ':')
        return false;
    const char *device = at + 1;
    at = skip_hex_digits(device, 2);
    if (at == NULL || *at != ':')
        return false;
    const char *function = at + 1;
    at = skip_hex_digits(function, 2);
    return at != NULL && *at == '\0' && device[0] <= '1' && function[0] == '0' && function[1] >= '0' &&
           function[1] <= '7';
}

static bool is_id(const char *text)
{
    return strncmp(text, "0x", 2) == 0 && strspn(text + 2, HEX) == 4 && text[6] == '\0';
}

static bool is_type(const char *text)
{
    return strcmp(text, "InfiniBand") == 0 || strcmp(text, "Ethernet") == 0;
}

static bool is_state(const char *text)
{
    return strcmp(text, "up") == 0 || strcmp(text, "down") == 0 || strcmp(text, "unknown") == 0;
}

static bool is_count(const char *text)
{
    return is_number(text, 0, UINT32_MAX);
}

static bool is_positive(const char *text)
{
    return is_number(text, 1, UINT32_MAX);
}

static bool is_lid(const char *text)
{
    return is_number(text, 1, UINT16_MAX);
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

/* A MAC, or what kind of name it is and the name. */
static bool is_chassis(const char *text)
{
    size_t type = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
    return is_mac(text) || (type > 0 && text[type] == ' ' && text[type + 1] != '\0' && text[type + 1] != ' ');
}

static bool is_yes(const char *text)
{
    return strcmp(text, "yes") == 0;
}

static bool is_cpus(const char *text)
{
    char canonical[FAB_REPORT_MAX_TEXT + 1];
    struct fab_cpus cpus;
    return fab_cpus_parse(text, &cpus) && fab_cpus_text(&cpus, canonical, sizeof(canonical)) &&
           strcmp(canonical, text) == 0;
}

#define TEXT     any_text, "1 to 255 bytes of UTF-8 without control characters"
#define NAME     is_name, "a name of 1 to 63 bytes without control characters"
#define GUID     is_guid, "0x and 16 lower-case hexadecimal digits, not all zero"
#define PCI      is_pci, "a PCI address as 0000:c1:00:01, lower case"
#define ID       is_id, "0x and 4 lower-case hexadecimal digits"
#define CPUS     is_cpus, "numbers of processors, as 0-11,24-35 or 0-14:2"
#define COUNT    is_count, "a decimal number below 2^32"
#define POSITIVE is_positive, "a decimal number from 1 to below 2^32"

static const struct kind {
    const char *name;
    bool (*is)(const char *text);
    const char *form;
    bool many;
} kinds[FAB_FACTS] = {
    [FAB_FACT_NAME] = {"name", NAME, false},
    [FAB_FACT_PORT] = {"port", is_port, "a decimal number from 1 to 254", false},
    [FAB_FACT_INTERFACE] = {"interface", NAME, false},
    [FAB_FACT_NODE_GUID] = {"node-guid", GUID, false},
    [FAB_FACT_SYSTEM_GUID] = {"system-guid", GUID, false},
    [FAB_FACT_PORT_GUID] = {"port-guid", GUID, false},
    [FAB_FACT_MAC] = {"mac", is_mac, "a MAC as 00:21:5e:c4:86:1a, lower case, not all zero", false},
    [FAB_FACT_PCI] = {"pci", PCI, false},
    [FAB_FACT_BUS] = {"bus", TEXT, false},
    [FAB_FACT_VENDOR] = {"vendor", TEXT, false},
    [FAB_FACT_VENDOR_ID] = {"vendor-id", ID, false},
    [FAB_FACT_PART] = {"part", TEXT, false},
    [FAB_FACT_PART_ID] = {"part-id", ID, false},
    [FAB_FACT_DRIVER] = {"driver", TEXT, false},
    [FAB_FACT_FIRMWARE] = {"firmware", TEXT, false},
    [FAB_FACT_TYPE] = {"type", is_type, "InfiniBand or Ethernet", false},
    [FAB_FACT_STATE] = {"state", is_state, "up, down or unknown", false},
    [FAB_FACT_MTU] = {"mtu", POSITIVE, false},
    [FAB_FACT_SPEED] = {"speed", POSITIVE, false},
    [FAB_FACT_LID] = {"lid", is_lid, "a decimal number from 1 to 65535", false},
    [FAB_FACT_GID] = {"gid", is_gid, "an IPv6 address in its short form, not all zero", true},
    [FAB_FACT_ADDRESS] = {"address", is_address, "an IP address and a length as 10.91.0.2/16", true},
    [FAB_FACT_NUMA] = {"numa", COUNT, false},
    [FAB_FACT_PACKAGE] = {"package", COUNT, false},
    [FAB_FACT_SWITCH] = {"switch", PCI, false},
    [FAB_FACT_SLOT_SPEED] = {"slot-speed", COUNT, false},
    [FAB_FACT_PROVIDER] = {"provider", TEXT, true},
    [FAB_FACT_PROTOCOL] = {"protocol", TEXT, true},
    [FAB_FACT_TRANSPORT] = {"transport", TEXT, true},
    [FAB_FACT_BANDWIDTH] = {"bandwidth", COUNT, false},
    [FAB_FACT_LATENCY] = {"latency", COUNT, false},
    [FAB_FACT_SWITCH_ID] = {"switch-id", is_chassis, "a MAC in lower case, or a word, a blank and a name",
                            false},
    [FAB_FACT_SWITCH_NAME] = {"switch-name", TEXT, false},
    [FAB_FACT_SWITCH_PORT] = {"switch-port", TEXT, false},
    [FAB_FACT_SOFTWARE] = {"software", is_yes, "yes", false},
    [FAB_FACT_CPUS] = {"cpus", CPUS, false},
    [FAB_FACT_PACKAGE_CPUS] = {"package-cpus", CPUS, false},
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

int fab_fact_check(enum fab_fact kind, const char *text, struct fab_err *err)
{
    if (fab_fact_name(kind) == NULL)
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "there is no kind %d of facts", (int)kind);
    size_t len = strlen(text);
    if (len == 0 || len > FAB_REPORT_MAX_TEXT || !fab_text_is_utf8(text, len) || !kinds[kind].is(text))
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "\"%.60s\" is not in the form of the fact %s: %s", text,
                        kinds[kind].name, kinds[kind].form);
    return PMIXFAB_OK;
}
