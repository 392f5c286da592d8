/*
 * scan_dump PROBE[:ARG]...: let local probes look, in this process, and print what they saw as one recorded
 * machine. Notes and errors go to standard error. --available PROBE prints what it says of this host.
 */
#include <stdio.h>
#include <string.h>

#include "probes/registry.h"

static void print_note(enum pmixfab_level level, const char *line, void *cbdata)
{
    (void)cbdata;
    fprintf(stderr, "%s: %s\n", level <= PMIXFAB_LOG_WARNING ? "warning" : "note", line);
}

static const struct probe *load(const char *spec, struct probe_config *config, struct fab_err *err)
{
    const struct probe *probe = probe_find(spec, &config->arg);
    if (probe == NULL || !probe_is_local(probe)) {
        fab_fail(err, PMIXFAB_ERR_NOTFOUND, "%s: no local probe", spec);
        return NULL;
    }
    if (probe->check(config, err) != PMIXFAB_OK)
        return NULL;
    return probe_load(probe, err);
}

static int look(const char *spec, struct fab_report *report, struct fab_err *err)
{
    const struct probe_sink sink = {print_note, NULL};
    struct probe_config config = {0};
    struct fab_report seen;
    const struct probe *probe = load(spec, &config, err);
    if (probe == NULL)
        return PMIXFAB_ERR_NOTFOUND;
    fab_report_init(&seen);
    int rc = probe->scan(&config, &sink, &seen, err);
    if (rc == PMIXFAB_OK && seen.host[0] == '\0')
        rc = fab_report_host(&seen, "this", err);
    if (rc == PMIXFAB_OK)
        rc = fab_report_finish(&seen, err);
    if (rc == PMIXFAB_OK)
        rc = fab_report_merge(report, &seen);
    if (rc == PMIXFAB_OK && report->host[0] == '\0')
        rc = fab_report_host(report, seen.host, err);
    fab_report_destroy(&seen);
    return rc;
}

static int available(const char *spec)
{
    char text[256] = "";
    struct fab_err err = {{0}};
    struct probe_config config = {0};
    const struct probe *probe = load(spec, &config, &err);
    int rc = probe == NULL ? PMIXFAB_ERR_NOTFOUND : probe->available(text, sizeof(text));
    printf("%s\n", probe == NULL ? err.text : text);
    return rc == PMIXFAB_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct fab_report report;
    struct fab_err err = {{0}};
    int rc = PMIXFAB_OK;
    if (argc < 2) {
        fprintf(stderr, "usage: scan_dump PROBE[:ARG]... | --available PROBE\n");
        return 2;
    }
    if (strcmp(argv[1], "--available") == 0)
        return argc == 3 ? available(argv[2]) : 2;
    fab_report_init(&report);
    for (int i = 1; i < argc && rc == PMIXFAB_OK; i++)
        rc = look(argv[i], &report, &err);
    if (rc == PMIXFAB_OK)
        rc = fab_report_finish(&report, &err);
    if (rc == PMIXFAB_OK)
        rc = probe_record(&report, stdout);
    if (rc != PMIXFAB_OK)
        fprintf(stderr, "%s (%s)\n", err.text, pmixfab_strerror(rc));
    fab_report_destroy(&report);
    return rc == PMIXFAB_OK ? 0 : 1;
}
