/* facts.c - facts as libraries say them. */
#include "probes/core/facts.h"

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
    switch (kind) {
    case FAB_FACT_BUS:
    case FAB_FACT_VENDOR:
    case FAB_FACT_PART:
    case FAB_FACT_DRIVER:
    case FAB_FACT_FIRMWARE:
    case FAB_FACT_PROVIDER:
    case FAB_FACT_PROTOCOL:
    case FAB_FACT_TRANSPORT:
    case FAB_FACT_SWITCH_NAME:
    case FAB_FACT_SWITCH_PORT:
        return true;
    default:
        return false;
    }
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

static int facts_add(struct fab_report *report, uint32_t item, enum fab_fact kind, const char *text,
                     bool estimate)
{
    if (text == NULL || text[0] == '\0' || (!report->finished && is_enough(report, item, kind, text)) ||
        (!is_free(kind) && fab_fact_check(kind, text, NULL) != PMIXFAB_OK))
        return PMIXFAB_OK;
    return (estimate ? fab_report_estimate : fab_report_fact)(report, item, kind, text);
}

int fact_add(struct fab_report *report, uint32_t item, enum fab_fact kind, const char *text)
{
    return facts_add(report, item, kind, text, false);
}

int fact_estimate(struct fab_report *report, uint32_t item, enum fab_fact kind, const char *text)
{
    return facts_add(report, item, kind, text, true);
}

int fact_printf(struct fab_report *report, uint32_t item, enum fab_fact kind, const char *fmt, ...)
{
    char text[FAB_REPORT_MAX_TEXT + 1];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return facts_add(report, item, kind, text, false);
}

int fact_gid(struct fab_report *report, uint32_t item, const unsigned char gid[16], bool infiniband)
{
    char text[INET6_ADDRSTRLEN];
    uint64_t guid = 0;
    int rc = fact_add(report, item, FAB_FACT_GID, inet_ntop(AF_INET6, gid, text, sizeof(text)));
    for (int i = 8; i < 16; i++)
        guid = guid << 8 | gid[i];
    if (rc == PMIXFAB_OK && infiniband)
        rc = fact_printf(report, item, FAB_FACT_PORT_GUID, "0x%016" PRIx64, guid);
    return rc;
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
