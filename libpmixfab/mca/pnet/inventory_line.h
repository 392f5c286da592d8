/*
 * inventory_line.h - a host's inventory as a line for the control socket (docs/control.md), and the answer to
 * it.
 *
 * By hand and not with a JSON library: the component lives in other people's processes, which may have one of
 * another version. Pure functions; any thread.
 */
#ifndef FAB_PNET_INVENTORY_LINE_H
#define FAB_PNET_INVENTORY_LINE_H

#include <stdbool.h>

#include "topo/inventory/model.h"

/* {"op":"deliver","bytes":"BASE64"} and a newline. free(*line). PMIXFAB_ERR_NOMEM, _INVAL (no bytes). */
int pnet_inventory_line(const void *bytes, size_t size, char **line, size_t *len);

#define PNET_ANSWER_MAX 65536 /* bytes of a line that is read */

struct pnet_answer {
    bool last;         /* it has "ok"; else it only tells of progress */
    bool ok;           /* it was taken */
    int code;          /* not ok: enum pmixfab_err, PMIXFAB_ERR_IO where none is told */
    char message[256]; /* not ok: why, printable, cut; may be empty */
};

/* One line of an answer, without its newline. PMIXFAB_ERR_SYNTAX: it is no JSON object, or its members have
 * not the types that they should have. */
int pnet_inventory_answer(const char *line, size_t len, struct pnet_answer *out);

#endif
