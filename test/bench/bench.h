/* bench.h - how a bench reports: a table for people, or with --json one object a line. */
#ifndef FAB_BENCH_H
#define FAB_BENCH_H

#include <stdbool.h>
#include <stddef.h>

struct bench_figure {
    const char *bench;    /* "costs" */
    const char *figure;   /* "fat tree 9826, 1 thread" */
    double value;         /* what was measured */
    const char *unit;     /* "ms" */
    const char *baseline; /* what it is held against: "memset"; NULL: an absolute figure */
    double baseline_value;
    double to_reach; /* largest allowed ratio value/baseline_value, or without a baseline largest value;
                        0: write down only */
    bool at_least;   /* the ratio is baseline_value/value and must be at least to_reach */
};

/* Parse --json; remove it from argv. */
void bench_init(int *argc, char **argv);
void bench_report(const struct bench_figure *figure);

/* Monotonic milliseconds. */
double bench_now(void);

/* Median of n values (sorts them). */
double bench_median(double *values, unsigned n);

/* A new folder NAME.XXXXXX beside this program: on the disk of the build, not in a memory file system. False:
 * errno says why. */
bool bench_folder(const char *name, char *dir, size_t size);

/* Write the snapshot of a generated fabric (fabric_parse()), the default plane "ib0", into a file. False:
 * that failed. */
bool bench_snapshot(const char *kind, const char *path);

/* Have the PMIx library of this process look for its components in its own place, and before that, where
 * `ours`, among those of this build. False: it is nowhere. */
bool bench_components(bool ours);

#endif
