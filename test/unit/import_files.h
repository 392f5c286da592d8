/* import_files.h - what the tests of imported fabrics share: read a text, say what came of it. */
#ifndef TEST_IMPORT_FILES_H
#define TEST_IMPORT_FILES_H

#include "probes/import/import.h"
#include "test/unit/test.h"
#include "topo/model/names.h"

/* Read and named as by default; inv is initialised here. */
static inline int import_text(source_file_reader *read, const char *text, struct fab_inventory *inv,
                              struct fab_err *err)
{
    struct fab_names *names = NULL;
    fab_inventory_init(inv);
    err->text[0] = '\0';
    int rc = read("f.txt", text, strlen(text), NULL, inv, err);
    if (rc == PMIXFAB_OK)
        rc = fab_names_new(NULL, &names, err) ?: fab_names_apply(names, inv, err);
    fab_names_free(names);
    return rc;
}

static inline int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "host HCA-1 > switch[port] 4xHDR" and "switch > switch[port] ...", sorted; a switch that
 * is below has the higher port. Free it. */
static inline char *import_cables(const struct fab_inventory *inv)
{
    char *lines[1000] = {NULL}, *out = NULL;
    unsigned n = 0;
    size_t size = 0;
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p], *peer = &inv->ports[port->peer];
        const struct fab_node *below = &inv->nodes[port->node], *above = &inv->nodes[peer->node];
        if (above->kind != FAB_SWITCH || (below->kind == FAB_SWITCH && port->num < peer->num))
            continue;
        char rate[32] = "";
        if (port->width != 0)
            snprintf(rate, sizeof(rate), " %ux%s", port->width, fab_speed_name(port->speed));
        assert_true(n < 1000 && asprintf(&lines[n++], "%s%s%s > %s[%u]%s\n", fab_str(inv, below->host),
                                         below->kind == FAB_HCA ? " " : "", fab_str(inv, below->name),
                                         fab_str(inv, above->name), peer->num, rate) > 0);
    }
    qsort(lines, n, sizeof(lines[0]), compare_lines);
    FILE *file = open_memstream(&out, &size);
    for (unsigned i = 0; i < n; i++) {
        fputs(lines[i], file);
        free(lines[i]);
    }
    fclose(file);
    return out;
}

/* The text is read as these cables. */
static inline void import_gives(source_file_reader *read, const char *text, const char *cables)
{
    SCOPED(fab_inventory) inv;
    must_do(import_text(read, text, &inv, fresh_err()));
    OWNED(free) char *told = import_cables(&inv);
    assert_string_equal(told, cables);
}

/* The text is refused with this code and a message that begins so. */
static inline void import_refuses(source_file_reader *read, const char *text, int code, const char *message)
{
    SCOPED(fab_inventory) inv;
    struct fab_err err;
    const int rc = import_text(read, text, &inv, &err);
    if (rc != code || strncmp(err.text, message, strlen(message)) != 0)
        fail_msg("\"%s\" gave %d \"%s\"", text, rc, err.text);
}

#endif
