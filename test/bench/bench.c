#include "test/bench/bench.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <pmix_server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/fabrics/snapshot.h"

static bool as_json, headed;

void bench_init(int *argc, char **argv)
{
    int kept = 1;
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            as_json = true;
        else
            argv[kept++] = argv[i];
    }
    *argc = kept;
    argv[kept] = NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
}

/* A JSON string; our names hold nothing worse than quotes. NULL: null. */
static void put_string(const char *key, const char *text)
{
    printf("\"%s\": ", key);
    if (text == NULL) {
        printf("null");
        return;
    }
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        if ((unsigned char)*text >= 0x20)
            putchar(*text);
    }
    putchar('"');
}

static void put_number(const char *key, double value, bool present)
{
    if (present && isfinite(value))
        printf("\"%s\": %.6g", key, value);
    else
        printf("\"%s\": null", key);
}

/* What is compared with to_reach: a ratio where there is a baseline, else the value. */
static bool reached(const struct bench_figure *f, double ratio)
{
    double compared = f->baseline != NULL ? ratio : f->value;
    return f->at_least ? compared >= f->to_reach : compared <= f->to_reach;
}

static void report_json(const struct bench_figure *f, double ratio)
{
    putchar('{');
    put_string("bench", f->bench);
    printf(", ");
    put_string("figure", f->figure);
    printf(", ");
    put_number("value", f->value, true);
    printf(", ");
    put_string("unit", f->unit);
    printf(", ");
    put_string("baseline", f->baseline);
    printf(", ");
    put_number("baseline_value", f->baseline_value, f->baseline != NULL);
    printf(", ");
    put_number("ratio", ratio, f->baseline != NULL);
    printf(", ");
    put_number("to_reach", f->to_reach, f->to_reach > 0);
    printf(", \"ok\": %s}\n", f->to_reach <= 0 ? "null" : reached(f, ratio) ? "true" : "false");
}

static void report_table(const struct bench_figure *f, double ratio)
{
    char base[64] = "", rate[32] = "", goal[32] = "";
    if (!headed)
        printf("%-8s %-44s %16s  %-28s %8s %10s\n", "bench", "figure", "value", "against", "ratio",
               "to reach");
    headed = true;
    if (f->baseline != NULL) {
        snprintf(base, sizeof(base), "%s %.3g %s", f->baseline, f->baseline_value, f->unit);
        snprintf(rate, sizeof(rate), "%.3g", ratio);
    }
    if (f->to_reach > 0)
        snprintf(goal, sizeof(goal), "%s %g", f->at_least ? ">=" : "<=", f->to_reach);
    printf("%-8s %-44s %10.4g %-5s  %-28s %8s %10s  %s\n", f->bench, f->figure, f->value, f->unit, base, rate,
           goal,
           f->to_reach <= 0    ? ""
           : reached(f, ratio) ? "ok"
                               : "MISSED");
}

void bench_report(const struct bench_figure *figure)
{
    double ratio = NAN;
    if (figure->baseline != NULL)
        ratio = figure->at_least ? figure->baseline_value / figure->value
                                 : figure->value / figure->baseline_value;
    if (as_json)
        report_json(figure, ratio);
    else
        report_table(figure, ratio);
}

double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int cmp_double(const void *va, const void *vb)
{
    double a = *(const double *)va, b = *(const double *)vb;
    return a < b ? -1 : a > b;
}

double bench_median(double *values, unsigned n)
{
    if (n == 0)
        return NAN;
    qsort(values, n, sizeof(*values), cmp_double);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

bool bench_folder(const char *name, char *dir, size_t size)
{
    char self[2048];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    return (size_t)snprintf(dir, size, "%s/%s.XXXXXX", self, name) < size && mkdtemp(dir) != NULL;
}

bool bench_snapshot(const char *kind, const char *path)
{
    const struct fab_snapshot_meta meta = {.generation = 1,
                                           .index = 1,
                                           .is_default = 1,
                                           .name = "ib0",
                                           .vendor = "bench",
                                           .identifier = "bench"};
    void *bytes = NULL;
    size_t size = 0;
    bool good = fabric_snapshot(kind, &meta, &bytes, &size) == PMIXFAB_OK;
    FILE *file = good ? fopen(path, "wb") : NULL;
    good = file != NULL && fwrite(bytes, 1, size, file) == size;
    if (file != NULL && fclose(file) != 0)
        good = false;
    free(bytes);
    return good;
}

/* The folder of a file, with more behind it. */
static void beside(char *out, const char *file, const char *more)
{
    char path[PATH_MAX] = "";
    if (realpath(file, path) == NULL)
        path[0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
    snprintf(out, 2 * PATH_MAX, "%s%s", path, more);
}

bool bench_components(bool ours)
{
    char built[2 * PATH_MAX], theirs[2 * PATH_MAX], both[4 * PATH_MAX + 2];
    Dl_info library;
    if (dladdr((void *)PMIx_server_init, &library) == 0)
        return false;
    beside(built, "/proc/self/exe", "/../lib/pmix:");
    beside(theirs, library.dli_fname, "/pmix");
    snprintf(both, sizeof(both), "%s%s", ours ? built : "", theirs);
    return setenv("PMIX_MCA_mca_base_component_path", both, 1) == 0;
}
