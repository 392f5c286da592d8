/* model.c - words and numbers of the model. */
#include "topo/inventory/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "topo/base/text.h"

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

const char *pmixfab_version(void)
{
    return PMIXFAB_VERSION;
}

const char *pmixfab_strerror(int err)
{
    switch ((enum pmixfab_err)err) { /* no default: the compiler finds what is missing */
    case PMIXFAB_OK:
        return "success";
    case PMIXFAB_ERR_INVAL:
        return "invalid argument";
    case PMIXFAB_ERR_NOMEM:
        return "out of memory";
    case PMIXFAB_ERR_IO:
        return "input or output failed";
    case PMIXFAB_ERR_NOTFOUND:
        return "not found";
    case PMIXFAB_ERR_SYNTAX:
        return "not in the expected form";
    case PMIXFAB_ERR_CONFLICT:
        return "the input contradicts itself";
    case PMIXFAB_ERR_RANGE:
        return "a number or size out of range";
    case PMIXFAB_ERR_TRUNCATED:
        return "the data end too early";
    case PMIXFAB_ERR_FOREIGN:
        return "data of another kind";
    case PMIXFAB_ERR_OLDER:
        return "an older format that is no longer read";
    case PMIXFAB_ERR_NEWER:
        return "a newer format that is not known yet";
    case PMIXFAB_ERR_CORRUPT:
        return "damaged data";
    case PMIXFAB_ERR_BUSY:
        return "in use by another";
    case PMIXFAB_ERR_PERM:
        return "not permitted";
    case PMIXFAB_ERR_TIMEOUT:
        return "timed out";
    case PMIXFAB_ERR_UNREACH:
        return "the daemon cannot be reached";
    case PMIXFAB_ERR_PARTIAL:
        return "only a part of the fabric answered";
    case PMIXFAB_ERR_UNSUPPORTED:
        return "not supported";
    }
    return "unknown error";
}

int fab_fail(struct fab_err *err, int code, const char *fmt, ...)
{
    struct fab_err made;
    va_list args;

    if (err == NULL)
        return code;
    /* a buffer of its own: the arguments may hold err->text */
    va_start(args, fmt);
    if (vsnprintf(made.text, sizeof(made.text), fmt, args) < 0)
        made.text[0] = '\0';
    va_end(args);
    fab_text_clean(err->text, sizeof(err->text), made.text, strlen(made.text), NULL);
    return code;
}

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
