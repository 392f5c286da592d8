/* model.c - words and numbers of the model. */
#include "topo/model/model.h"

#include <string.h>

static const struct {
    const char *name;
    uint32_t lane_mbps;
} speeds[] = {
    [FAB_SPEED_UNKNOWN] = {"?", 0}, [FAB_SDR] = {"SDR", 2500},      [FAB_DDR] = {"DDR", 5000},
    [FAB_QDR] = {"QDR", 10000},     [FAB_FDR10] = {"FDR10", 10000}, [FAB_FDR] = {"FDR", 14000},
    [FAB_EDR] = {"EDR", 25000},     [FAB_HDR] = {"HDR", 50000},     [FAB_NDR] = {"NDR", 100000},
    [FAB_XDR] = {"XDR", 200000},    [FAB_1GE] = {"1GE", 1000},
};

#define N_SPEEDS (sizeof(speeds) / sizeof(speeds[0]))

uint32_t fab_rate_mbps(unsigned width, enum fab_speed speed)
{
    if ((size_t)speed >= N_SPEEDS || (width != 1 && width != 2 && width != 4 && width != 8 && width != 12))
        return 0;
    return width * speeds[speed].lane_mbps;
}

bool fab_rate_parse(uint64_t mbps, unsigned *width, enum fab_speed *speed)
{
    static const unsigned narrow[] = {1, 2, 4, 8, 12}, wide[] = {4, 1, 2, 8, 12};
    const unsigned *widths = mbps < 40000 ? narrow : wide;
    uint32_t best = 0;

    *width = mbps == 0 ? 0 : 1;
    *speed = mbps == 0 ? FAB_SPEED_UNKNOWN : FAB_1GE;
    for (size_t w = 0; w < sizeof(narrow) / sizeof(narrow[0]); w++) {
        for (enum fab_speed s = FAB_SDR; s < FAB_SPEEDS; s++) {
            uint32_t rate = fab_rate_mbps(widths[w], s);
            if (rate > mbps || rate <= best)
                continue;
            best = rate;
            *width = widths[w];
            *speed = s;
        }
    }
    return mbps != 0 && best == mbps;
}

const char *fab_speed_name(enum fab_speed speed)
{
    return (size_t)speed < N_SPEEDS ? speeds[speed].name : speeds[FAB_SPEED_UNKNOWN].name;
}

enum fab_speed fab_speed_parse(const char *text, size_t len)
{
    for (size_t i = FAB_SDR; i < N_SPEEDS; i++) {
        if (strlen(speeds[i].name) == len && memcmp(speeds[i].name, text, len) == 0)
            return (enum fab_speed)i;
    }
    return FAB_SPEED_UNKNOWN;
}

bool fab_prefix_is_ethernet(uint64_t prefix)
{
    return FAB_GUID_IS_MADE_UP(prefix) && prefix != FAB_UNATTACHED;
}
