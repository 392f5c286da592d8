/*
 * string_table.h - a growing pool of texts; each text is stored once.
 *
 * A pool may start with the content of an earlier pool. Those texts keep their offsets; unused ones stay
 * until they take too much space (fab_strings_untidy).
 */
#ifndef FAB_TOPO_BASE_STRING_TABLE_H
#define FAB_TOPO_BASE_STRING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo/base/error.h"

struct fab_strings {
    char *text;    /* the pool: texts with their terminating 0; the first one is empty */
    uint32_t size; /* size of the pool, bytes */
    size_t cap;
    uint32_t *places;  /* hash table of offsets, 0: free; NULL: not built yet */
    uint32_t n, mask;  /* strings in the table; number of its places - 1 */
    uint32_t searched; /* texts searched without a table */
    uint64_t seed;     /* secret from those who choose the texts; the result does not depend on it */
    int error;         /* code of the first failure; everything after it is invalid */
    uint32_t kept;     /* bytes of the earlier pool */
    uint32_t in_use;   /* of them, bytes of texts in use */
    uint64_t *used;    /* one bit for each of those bytes: a text in use begins there */
};

/* Make an empty pool. Destroy it even after PMIXFAB_ERR_NOMEM. */
int fab_strings_init(struct fab_strings *strings);
/* As above, with a copy of an earlier pool, whose first and last bytes are 0. */
int fab_strings_begin(struct fab_strings *strings, const char *section, uint32_t size);
void fab_strings_destroy(struct fab_strings *strings);

/* Add a text and return its offset; 0, with strings->error set, without memory or offsets. */
uint32_t fab_strings_add(struct fab_strings *strings, const char *text);
/* As above. If the text stands at `offset` of the earlier pool, no search is needed. */
uint32_t fab_strings_take(struct fab_strings *strings, uint32_t offset, const char *text);

/*
 * Return whether unused texts take more than 4 KiB and more than an eighth of the used size, so that a new
 * pool is better. The same texts, taken again from a tidy pool, make a tidy pool.
 */
bool fab_strings_untidy(const struct fab_strings *strings);

#endif
