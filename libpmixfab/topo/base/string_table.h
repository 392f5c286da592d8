/*
 * string_table.h - a pool of texts that grows: each text stands once.
 *
 * They may begin with those of an earlier pool: what stood there keeps its place, and what nobody asks
 * for any more goes on standing there until it is too much (fab_strings_untidy).
 */
#ifndef FAB_TOPO_BASE_STRING_TABLE_H
#define FAB_TOPO_BASE_STRING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo/base/error.h"

struct fab_strings {
    char *text;    /* the section: each with its end; the first is the empty one */
    uint32_t size; /* its bytes */
    size_t cap;
    uint32_t *places;  /* a hash table of offsets, 0: free; NULL: nobody has needed it yet */
    uint32_t n, mask;  /* strings in it; places - 1 */
    uint32_t searched; /* texts, without a table */
    uint64_t seed;     /* who makes the texts cannot know it, and nothing that comes out depends on it */
    int error;         /* of the first failure; what comes after it is worth nothing */
    uint32_t kept;     /* bytes that stood there at the beginning */
    uint32_t in_use;   /* of them, those of texts that were asked for */
    uint64_t *used;    /* a bit for each of them: a text that was asked for begins there */
};

/* PMIXFAB_ERR_NOMEM; to be destroyed all the same. */
int fab_strings_init(struct fab_strings *strings);
/* The same, with a copy of an earlier section (its first and its last byte are 0). */
int fab_strings_begin(struct fab_strings *strings, const char *section, uint32_t size);
void fab_strings_destroy(struct fab_strings *strings);

/* Offset of text; 0 with strings->error set where there is no memory, or no offset left. */
uint32_t fab_strings_add(struct fab_strings *strings, const char *text);
/* The same. Nothing is searched where it stands at `offset` of the earlier section. */
uint32_t fab_strings_take(struct fab_strings *strings, uint32_t offset, const char *text);

/* More than an eighth of it, and more than 4 KiB, is nobody's any more: better to begin anew. The same texts,
 * taken again from what is tidy, are tidy. */
bool fab_strings_untidy(const struct fab_strings *strings);

#endif
