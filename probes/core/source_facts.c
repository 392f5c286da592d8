/* source_facts.c - facts as libraries say them. */
#include "probes/core/source_facts.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Is any text a fact of this kind? The report makes it printable. */
static bool is_free(enum fab_fact kind)
{
    static const bool kinds[FAB_FACTS] = {
        [FAB_FACT_BUS] = true,        [FAB_FACT_VENDOR] = true,    [FAB_FACT_PART] = true,
        [FAB_FACT_DRIVER] = true,     [FAB_FACT_FIRMWARE] = true,  [FAB_FACT_PROVIDER] = true,
        [FAB_FACT_PROTOCOL] = true,   [FAB_FACT_TRANSPORT] = true, [FAB_FACT_SWITCH_NAME] = true,
        [FAB_FACT_SWITCH_PORT] = true};
    return kinds[kind];
}

/* Is there no room in the item for this fact, because it has it, or its kind, or too many of the kind? The
 * item that is being filled is mostly the last one, so its facts are looked for from the end. */
static bool is_enough(const struct fab_report *report, uint32_t item, enum fab_fact kind, const char *text)
{
    uint32_t same = 0, left = item < report->n_items ? report->items[item].n : 0;
    for (uint32_t i = report->n_facts; i > 0 && left > 0; i--) {
        const struct fab_report_fact *fact = &report->facts[i - 1];
        if (report->owner[i - 1] != item)
            continue;
        left--;
        if (fact->kind != kind)
            continue;
        same++;
        if (!fab_fact_many(kind) || same >= FACTS_MANY || strcmp(report->pool + fact->text, text) == 0)
            return true;
    }
    return false;
}

static void facts_add_one(struct probe_item *item, enum fab_fact kind, const char *text, bool estimate)
{
    struct fab_report *report = item->report;
    if (item->rc != PMIXFAB_OK || text == NULL || text[0] == '\0' ||
        (!report->finished && is_enough(report, item->index, kind, text)) ||
        (!is_free(kind) && fab_fact_check(kind, text, NULL) != PMIXFAB_OK))
        return;
    item->rc = (estimate ? fab_report_estimate : fab_report_fact)(report, item->index, kind, text);
}

void fact_add(struct probe_item *item, enum fab_fact kind, const char *text)
{
    facts_add_one(item, kind, text, false);
}

void fact_estimate(struct probe_item *item, enum fab_fact kind, const char *text)
{
    facts_add_one(item, kind, text, true);
}

void fact_printf(struct probe_item *item, enum fab_fact kind, const char *fmt, ...)
{
    char text[FAB_REPORT_MAX_TEXT + 1];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fact_add(item, kind, text);
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
