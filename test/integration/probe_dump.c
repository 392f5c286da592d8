/*
 * probe_dump PROBE[:ARG] [--compare PROBE[:ARG]]: run a probe in this process and print what it saw,
 * canonically: a line a subnet, a node, a port. With --compare, say nothing and end with status 0 where both
 * saw the same.
 */
#include <stdio.h>
#include <string.h>

#include "probes/registry.h"
#include "test/fabrics/dump.h"
#include "topo/model/names.h"

static void print_note(enum pmixfab_level level, const char *line, void *cbdata)
{
    (void)cbdata;
    fprintf(stderr, "%s: %s\n", level <= PMIXFAB_LOG_WARNING ? "warning" : "note", line);
}

static int look(const char *spec, struct fab_inventory *inv)
{
    const struct probe_sink sink = {print_note, NULL};
    struct probe_config config = {0};
    struct fab_err err = {{0}};
    struct fab_names *names = NULL;
    const struct probe *probe = probe_find(spec, &config.arg);
    fab_inventory_init(inv);
    if (probe == NULL) {
        fprintf(stderr, "%s: no such probe\n", spec);
        return PMIXFAB_ERR_NOTFOUND;
    }
    int rc = probe->check(&config, &err);
    if (rc == PMIXFAB_OK)
        rc = probe->run(&config, &sink, inv, &err);
    if (rc == PMIXFAB_OK)
        rc = fab_names_new(NULL, &names, &err);
    if (rc == PMIXFAB_OK)
        rc = fab_names_apply(names, inv, &err);
    fab_names_free(names);
    if (rc != PMIXFAB_OK)
        fprintf(stderr, "%s (%s)\n", err.text, pmixfab_strerror(rc));
    return rc;
}

int main(int argc, char **argv)
{
    struct fab_inventory inv, other;
    int status = 1;
    if (argc != 2 && (argc != 4 || strcmp(argv[2], "--compare") != 0)) {
        fprintf(stderr, "usage: probe_dump PROBE[:ARG] [--compare PROBE[:ARG]]\n");
        return 2;
    }
    fab_inventory_init(&other);
    if (look(argv[1], &inv) != PMIXFAB_OK)
        goto cleanup;
    if (argc == 2) {
        fabric_dump(&inv, stdout);
        status = 0;
    } else if (look(argv[3], &other) == PMIXFAB_OK) {
        status = fab_inventory_equal(&inv, &other) ? 0 : 1;
    }

cleanup:
    fab_inventory_destroy(&inv);
    fab_inventory_destroy(&other);
    return status;
}
