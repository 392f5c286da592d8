/* item.c - filling an item of a report. */
#include "probes/core/item.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "topo/base/text.h"

void probe_item_open(struct probe_item *item, enum fab_source source, const char *what,
                     const struct probe_sink *sink, struct fab_report *report)
{
    *item = (struct probe_item){.sink = sink, .report = report, .what = what};
    item->rc = fab_report_item(report, source, &item->index);
}

void probe_item_fact(struct probe_item *item, enum fab_fact kind, const char *fmt, ...)
{
    char text[FAB_REPORT_MAX_TEXT + 1];
    struct fab_err err = {{0}};
    va_list args;
    if (item->rc != PMIXFAB_OK)
        return;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : strlen(text);
    const char *trimmed = fab_text_trim(text, &len);
    if (fab_text_clean(text, sizeof(text), trimmed, len, NULL) == 0)
        return;
    if (fab_fact_check(kind, text, &err) == PMIXFAB_OK)
        item->rc = fab_report_fact(item->report, item->index, kind, text);
    else
        probe_note(item->sink, PMIXFAB_LOG_DEBUG, "%s: left out: %s", item->what, err.text);
}

void probe_item_pci(struct probe_item *item, enum fab_fact kind, unsigned domain, unsigned bus,
                    unsigned device, unsigned function)
{
    probe_item_fact(item, kind, "%04x:%02x:%02x:%02x", domain, bus, device, function);
}

void probe_item_guid(struct probe_item *item, enum fab_fact kind, uint64_t guid)
{
    if (guid != 0)
        probe_item_fact(item, kind, "0x%016" PRIx64, guid);
}

bool probe_item_gid(struct probe_item *item, const uint8_t gid[16])
{
    static const uint8_t zero[16];
    char text[INET6_ADDRSTRLEN];
    if (memcmp(gid, zero, sizeof(zero)) == 0 || inet_ntop(AF_INET6, gid, text, sizeof(text)) == NULL)
        return true;
    for (unsigned i = 0; i < item->n_gids; i++) {
        if (memcmp(item->gids[i], gid, sizeof(zero)) == 0) /* RoCE has each once a version */
            return true;
    }
    if (item->n_gids == PROBE_MAX_GIDS) {
        if (!item->full)
            probe_note(item->sink, PMIXFAB_LOG_INFO,
                       "%s: it has more than %d GIDs; the first ones are reported", item->what,
                       PROBE_MAX_GIDS);
        item->full = true;
        return false;
    }
    memcpy(item->gids[item->n_gids++], gid, sizeof(zero));
    probe_item_fact(item, FAB_FACT_GID, "%s", text);
    return true;
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
