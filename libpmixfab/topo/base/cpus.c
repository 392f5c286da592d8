/* cpus.c - sets of processors, by the numbers that the operating system gives them. */
#include "topo/base/cpus.h"

#include <stdio.h>
#include <string.h>

/* Read a decimal number below FAB_CPUS_MAX and move *at past it. */
static bool read_cpu(const char **at, unsigned *cpu)
{
    const char *first = *at;
    *cpu = 0;
    for (; **at >= '0' && **at <= '9' && *cpu < FAB_CPUS_MAX; ++*at)
        *cpu = 10 * *cpu + (unsigned)(**at - '0');
    return *at != first && *cpu < FAB_CPUS_MAX;
}

/* Read "3", "3-9" or "3-9:2". */
static bool read_range(const char **at, struct fab_cpus *out)
{
    unsigned from, to, step = 1;
    if (!read_cpu(at, &from))
        return false;
    to = from;
    if (**at == '-') {
        ++*at;
        if (!read_cpu(at, &to) || to < from)
            return false;
        if (**at == ':') {
            ++*at;
            if (!read_cpu(at, &step) || step == 0)
                return false;
        }
    }
    for (unsigned cpu = from; cpu <= to; cpu += step)
        fab_cpus_add(out, cpu);
    return true;
}

bool fab_cpus_parse(const char *text, struct fab_cpus *out)
{
    const char *at = text;
    memset(out, 0, sizeof(*out));
    while (at != NULL && read_range(&at, out)) {
        if (*at == '\0')
            return true;
        if (*at++ != ',')
            break;
    }
    memset(out, 0, sizeof(*out));
    return false;
}

unsigned fab_cpus_next(const struct fab_cpus *cpus, unsigned from)
{
    for (unsigned w = from / 64; w < FAB_CPUS_MAX / 64; w++) {
        uint64_t word = cpus->words[w];
        if (w == from / 64)
            word &= UINT64_MAX << from % 64;
        if (word != 0)
            return 64 * w + (unsigned)__builtin_ctzll(word);
    }
    return FAB_CPUS_MAX;
}

bool fab_cpus_meet(const struct fab_cpus *a, const struct fab_cpus *b)
{
    for (unsigned w = 0; w < FAB_CPUS_MAX / 64; w++)
        if ((a->words[w] & b->words[w]) != 0)
            return true;
    return false;
}

/* Write a step only for three or more processors; two that are not adjacent are listed one by one. */
bool fab_cpus_text(const struct fab_cpus *cpus, char *out, size_t size)
{
    size_t at = 0;
    unsigned from = fab_cpus_next(cpus, 0), after;
    out[0] = '\0';
    for (; from < FAB_CPUS_MAX && at < size; from = after) {
        const char *comma = at > 0 ? "," : "";
        unsigned to = from, n = 1;
        after = fab_cpus_next(cpus, from + 1);
        const unsigned step = after - from;
        for (; after < FAB_CPUS_MAX && after - to == step; n++) {
            to = after;
            after = fab_cpus_next(cpus, to + 1);
        }
        if (n == 1 || (n == 2 && step > 1)) {
            at += (size_t)snprintf(out + at, size - at, "%s%u", comma, from);
            after = fab_cpus_next(cpus, from + 1);
        } else if (step == 1) {
            at += (size_t)snprintf(out + at, size - at, "%s%u-%u", comma, from, to);
        } else {
            at += (size_t)snprintf(out + at, size - at, "%s%u-%u:%u", comma, from, to, step);
        }
    }
    return at > 0 && at < size;
}
