/*
 * snapshot_strings.h - the strings of a snapshot while it is being built: each text stands once.
 */
#ifndef FAB_TOPO_SNAPSHOT_STRINGS_H
#define FAB_TOPO_SNAPSHOT_STRINGS_H

#include "topo/model.h"

struct snap_strings {
    char *text;    /* the section: each with its end; the first is the empty one */
    uint32_t size; /* its bytes */
    size_t cap;
    uint32_t *places; /* a hash table of offsets, 0: free */
    uint32_t n, mask; /* strings in it; places - 1 */
    int error;        /* of the first failure; what comes after it is worth nothing */
};

/* PMIXFAB_ERR_NOMEM; to be destroyed all the same. */
int fab_strings_init(struct snap_strings *strings);
void fab_strings_destroy(struct snap_strings *strings);

/* Offset of text; 0 with strings->error set where there is no memory, or no offset left. */
uint32_t fab_strings_add(struct snap_strings *strings, const char *text);

#endif
