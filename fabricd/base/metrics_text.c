/* metrics_text.c - the format, and what both roles tell. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/metrics.h"
#include "pmixfab.h"

char *metrics_text(metrics_fn tell, const void *owner)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    tell(out, owner);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* A family of counters is called there without _total, and the end is marked. */
char *metrics_open_text(metrics_fn tell, const void *owner)
{
    char *text = metrics_text(tell, owner), *open = NULL, *rest = NULL;
    size_t size;
    FILE *out = text == NULL ? NULL : open_memstream(&open, &size);
    for (char *line = out == NULL ? NULL : strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const size_t name = line[0] == '#' ? 7 + strcspn(line + 7, " ") : 0; /* its end */
        const bool total = name > 13 && strncmp(line + name - 6, "_total", 6) == 0;
        fprintf(out, "%.*s%s\n", (int)(total ? name - 6 : name), line, line + name);
    }
    free(text);
    if (out != NULL)
        fputs("# EOF\n", out);
    if (out != NULL && fclose(out) == 0)
        return open;
    free(open);
    return NULL;
}

void metrics_family(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A label's value: three characters are written otherwise. */
static void metrics_put_label(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\\' || *text == '"')
            fputc('\\', out);
        if (*text == '\n')
            fputs("\\n", out);
        else
            fputc(*text, out);
    }
}

/* So many labels. */
static void metrics_put_sample(FILE *out, const char *name, const char *const *labels,
                               const char *const *values, unsigned n, double number)
{
    fputs(name, out);
    for (unsigned i = 0; i < n; i++) {
        fprintf(out, "%s%s=\"", i == 0 ? "{" : ",", labels[i]);
        metrics_put_label(out, values[i]);
        fputs(i + 1 < n ? "\"" : "\"}", out);
    }
    if (number == floor(number) && fabs(number) < 1e15)
        fprintf(out, " %.0f\n", number);
    else
        fprintf(out, " %.16g\n", number); /* of a time, microseconds */
}

void metrics_sample(FILE *out, const char *name, const char *label, const char *value, double number)
{
    metrics_put_sample(out, name, &label, &value, label != NULL, number);
}

void metrics_sample_of(FILE *out, const char *name, const char *const labels[2], const char *const values[2],
                       double number)
{
    metrics_put_sample(out, name, labels, values, 2, number);
}

void metrics_one(FILE *out, const char *name, const char *type, const char *help, double number)
{
    metrics_family(out, name, type, help);
    metrics_sample(out, name, NULL, NULL, number);
}

static int64_t started; /* microseconds of CLOCK_MONOTONIC */

void metrics_started(void)
{
    started = clock_now(CLOCK_MONOTONIC);
}

void metrics_of_both(FILE *out, const char *role, const struct counts *counts)
{
    metrics_family(out, "fabricd_build_info", "gauge", "Always 1; the version is in its label.");
    metrics_sample(out, "fabricd_build_info", "version", pmixfab_version(), 1);
    metrics_family(out, "fabricd_role_info", "gauge",
                   "Always 1; the role, scheduler or node, is in its label.");
    metrics_sample(out, "fabricd_role_info", "role", role, 1);
    metrics_one(out, "fabricd_uptime_seconds", "gauge", "Time since fabricd was started.",
                (double)(clock_now(CLOCK_MONOTONIC) - started) / 1e6);
    metrics_one(out, "fabricd_control_connections_total", "counter", "Connections to the control socket.",
                (double)counted(counts, COUNT_CONNECTIONS));
}
