/* facts.c - remarks, facts of an item from a library or the kernel, and files of one line. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "probes/core/facts.h"
#include "probes/core/probe.h"
#include "topo/base/text.h"

/* ---- a probe's remarks ---- */

void probe_note(const struct probe_sink *sink, enum pmixfab_level level, const char *fmt, ...)
{
    char line[256];
    va_list ap;
    if (sink == NULL || sink->note == NULL)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    sink->note(level, line, sink->cbdata);
}

/* ---- files of one line ---- */

bool sysfs_line(const char *folder, const char *name, char *text, size_t size)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
        return false;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    bool ok = fgets(text, (int)size, file) != NULL;
    fclose(file);
    if (ok)
        text[strcspn(text, "\n")] = '\0';
    return ok && text[0] != '\0';
}

bool sysfs_link(const char *folder, const char *name, char *text, size_t size)
{
    char path[PATH_MAX], target[PATH_MAX];
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
        return false;
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    if (n <= 0)
        return false;
    target[n] = '\0';
    const char *slash = strrchr(target, '/');
    const char *last = slash == NULL ? target : slash + 1;
    return last[0] != '\0' && (size_t)snprintf(text, size, "%s", last) < size;
}

unsigned sysfs_number(const char *folder, const char *name)
{
    char text[32], *end;
    if (!sysfs_line(folder, name, text, sizeof(text)))
        return 0;
    errno = 0;
    long value = strtol(text, &end, 0);
    return errno == 0 && *end == '\0' && value > 0 && value < INT_MAX ? (unsigned)value : 0;
}

/* ---- filling an item of a report ---- */

void probe_item_open(struct probe_item *item, enum fab_source source, const char *what,
                     const struct probe_sink *sink, struct fab_report *report)
{
    *item = (struct probe_item){.sink = sink, .report = report, .what = what};
    item->rc = fab_report_item(report, source, &item->index);
}

/*
 * Return the number of facts of this kind in the item. The present item is mostly the last one, so its facts
 * are searched from the end.
 */
static uint32_t count_facts(const struct fab_report *report, uint32_t item, enum fab_fact kind,
                            const char *text, bool *has)
{
    uint32_t n = 0, left = item < report->n_items ? report->items[item].n : 0;
    *has = false;
    for (uint32_t i = report->n_facts; i > 0 && left > 0; i--) {
        const struct fab_report_fact *fact = &report->facts[i - 1];
        if (report->owner[i - 1] != item)
            continue;
        left--;
        n += fact->kind == kind;
        *has |= fact->kind == kind && strcmp(report->pool + fact->text, text) == 0;
    }
    return n;
}

static void add_fact_text(struct probe_item *item, enum fab_fact kind, const char *text, bool estimate)
{
    struct fab_report *report = item->report;
    char clean[FAB_REPORT_MAX_TEXT + 1];
    struct fab_err err = {{0}};
    bool has = false;
    if (item->rc != PMIXFAB_OK || text == NULL ||
        fab_text_clean(clean, sizeof(clean), text, strlen(text), NULL) == 0)
        return;
    const uint32_t n = report->finished ? 0 : count_facts(report, item->index, kind, clean, &has);
    if (has || n >= (fab_fact_many(kind) ? FACTS_MANY : 1))
        return;
    if (fab_fact_check(kind, clean, &err) == PMIXFAB_OK)
        item->rc = (estimate ? fab_report_estimate : fab_report_fact)(report, item->index, kind, clean);
    else
        probe_note(item->sink, PMIXFAB_LOG_DEBUG, "%s: left out: %s", item->what, err.text);
}

void fact_add(struct probe_item *item, enum fab_fact kind, const char *text)
{
    add_fact_text(item, kind, text, false);
}

void fact_estimate(struct probe_item *item, enum fab_fact kind, const char *text)
{
    add_fact_text(item, kind, text, true);
}

void fact_printf(struct probe_item *item, enum fab_fact kind, const char *fmt, ...)
{
    char text[FAB_REPORT_MAX_TEXT + 1];
    va_list ap;
    va_start(ap, fmt);
    size_t len = vsnprintf(text, sizeof(text), fmt, ap) < 0 ? 0 : strlen(text);
    va_end(ap);
    const char *trimmed = fab_text_trim(text, &len);
    text[trimmed - text + (ptrdiff_t)len] = '\0';
    fact_add(item, kind, trimmed);
}

void fact_pci(struct probe_item *item, enum fab_fact kind, unsigned domain, unsigned bus, unsigned device,
              unsigned function)
{
    fact_printf(item, kind, "%04x:%02x:%02x:%02x", domain, bus, device, function);
}

bool probe_pci_text(const char *text, char *out, size_t size)
{
    unsigned domain, bus, device, function;
    int n = -1;
    if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &n) != 4 || n < 0 ||
        text[n] != '\0' || !isxdigit((unsigned char)text[0]))
        return false;
    return (size_t)snprintf(out, size, "%04x:%02x:%02x:%02x", domain, bus, device, function) < size;
}

void fact_guid(struct probe_item *item, enum fab_fact kind, uint64_t guid)
{
    if (guid != 0)
        fact_printf(item, kind, "0x%016" PRIx64, guid);
}

void fact_mac(struct probe_item *item, const uint8_t mac[6])
{
    static const uint8_t zero[6];
    if (memcmp(mac, zero, sizeof(zero)) != 0)
        fact_printf(item, FAB_FACT_MAC, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
                    mac[4], mac[5]);
}

bool probe_item_gid(struct probe_item *item, const uint8_t gid[16])
{
    static const uint8_t zero[16];
    char text[INET6_ADDRSTRLEN];
    bool has;
    if (item->rc != PMIXFAB_OK || memcmp(gid, zero, sizeof(zero)) == 0 ||
        inet_ntop(AF_INET6, gid, text, sizeof(text)) == NULL)
        return true;
    const uint32_t n = count_facts(item->report, item->index, FAB_FACT_GID, text, &has);
    if (has) /* RoCE has each once for each version */
        return true;
    if (n < PROBE_MAX_GIDS) {
        item->rc = fab_report_fact(item->report, item->index, FAB_FACT_GID, text);
        return true;
    }
    if (!item->full)
        probe_note(item->sink, PMIXFAB_LOG_INFO, "%s: more than %d GIDs; only the first ones are reported",
                   item->what, PROBE_MAX_GIDS);
    item->full = true;
    return false;
}

uint64_t probe_be(const uint8_t *bytes, unsigned n)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++)
        value = value << 8 | bytes[i];
    return value;
}

uint8_t probe_lanes(unsigned width)
{
    static const uint8_t lanes[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};
    return width < sizeof(lanes) ? lanes[width] : 0;
}

void fact_gid(struct probe_item *item, const unsigned char gid[16], bool infiniband)
{
    char text[INET6_ADDRSTRLEN];
    fact_add(item, FAB_FACT_GID, inet_ntop(AF_INET6, gid, text, sizeof(text)));
    if (infiniband)
        fact_printf(item, FAB_FACT_PORT_GUID, "0x%016" PRIx64, probe_be(gid + 8, 8));
}

enum fact_interface fact_interface(const char *name)
{
    struct ifreq request = {0};
    if (strlen(name) >= sizeof(request.ifr_name) || if_nametoindex(name) == 0)
        return FACT_NO_INTERFACE;
    strcpy(request.ifr_name, name);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool loopback =
        fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_LOOPBACK) != 0;
    if (fd >= 0)
        close(fd);
    return loopback ? FACT_LOOPBACK : FACT_INTERFACE;
}

int fact_available(int (*scan)(const struct probe_config *config, const struct probe_sink *sink,
                               struct fab_report *report, struct fab_err *err),
                   const char *prefix, const char *noun, char *text, size_t size)
{
    const struct probe_config config = {0};
    struct fab_report report;
    struct fab_err err = {{0}};
    fab_report_init(&report);
    int rc = scan(&config, NULL, &report, &err);
    if (rc == PMIXFAB_OK)
        snprintf(text, size, "%s%u %s%s", prefix, report.n_items, noun, report.n_items == 1 ? "" : "s");
    else
        snprintf(text, size, "%s", err.text);
    fab_report_destroy(&report);
    return rc;
}

const struct probe_counter_kind probe_counter_kinds[PROBE_COUNTERS] = {
    [COUNTER_SYMBOL_ERRORS] = {"symbol_errors", "symbol errors", UINT16_MAX, true, 10},
    [COUNTER_LINK_RECOVERIES] = {"link_recoveries", "link recoveries", UINT8_MAX, true, 10},
    [COUNTER_LINK_DOWNED] = {"link_downed", "link downed", UINT8_MAX, true, 10},
    [COUNTER_RECEIVE_ERRORS] = {"receive_errors", "receive errors", UINT16_MAX, true, 10},
    [COUNTER_LOCAL_INTEGRITY] = {"local_integrity", "local integrity errors", 15, true, 10},
    [COUNTER_BUFFER_OVERRUNS] = {"buffer_overruns", "buffer overruns", 15, true, 10},
    [COUNTER_REMOTE_ERRORS] = {"remote_errors", "remote physical errors", UINT16_MAX, false, 100},
    [COUNTER_DISCARDS] = {"discards", "discards", UINT16_MAX, false, 100},
    [COUNTER_SENT_WORDS] = {"sent_words", "words sent", UINT64_MAX, false, 0},
    [COUNTER_RECEIVED_WORDS] = {"received_words", "words received", UINT64_MAX, false, 0},
    [COUNTER_SENT_PACKETS] = {"sent_packets", "packets sent", UINT64_MAX, false, 0},
    [COUNTER_RECEIVED_PACKETS] = {"received_packets", "packets received", UINT64_MAX, false, 0},
};
