#include "topo/snapshot_strings.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

int fab_strings_init(struct snap_strings *strings)
{
    *strings = (struct snap_strings){.size = 1, .cap = 4096, .mask = 1023};
    strings->text = calloc(strings->cap, 1);
    strings->places = calloc(strings->mask + 1u, sizeof(*strings->places));
    if (strings->text == NULL || strings->places == NULL)
        strings->error = PMIXFAB_ERR_NOMEM;
    return strings->error;
}

void fab_strings_destroy(struct snap_strings *strings)
{
    free(strings->text);
    free(strings->places);
    *strings = (struct snap_strings){0};
}

/* Where text of this size, its end included, stands in the table, or the free place where it would. */
static uint32_t *find_place(const struct snap_strings *strings, const char *text, size_t size)
{
    uint32_t at = (uint32_t)XXH3_64bits(text, size) & strings->mask;

    while (strings->places[at] != 0 && strcmp(strings->text + strings->places[at], text) != 0)
        at = (at + 1) & strings->mask;
    return &strings->places[at];
}

/* Twice the places. The strings stand one behind the other, so they are found without the old table. */
static bool grow_table(struct snap_strings *strings)
{
    uint32_t mask = 2 * strings->mask + 1;
    uint32_t *places = calloc((size_t)mask + 1, sizeof(*places));

    if (places == NULL)
        return false;
    free(strings->places);
    strings->places = places;
    strings->mask = mask;
    for (uint32_t offset = 1; offset < strings->size;) {
        size_t size = strlen(strings->text + offset) + 1;
        *find_place(strings, strings->text + offset, size) = offset;
        offset += (uint32_t)size;
    }
    return true;
}

static bool grow_text(struct snap_strings *strings, size_t size)
{
    if (strings->size + size <= strings->cap)
        return true;
    size_t cap = 2 * strings->cap + size;
    char *grown = realloc(strings->text, cap);
    if (grown == NULL)
        return false;
    strings->text = grown;
    strings->cap = cap;
    return true;
}

uint32_t fab_strings_add(struct snap_strings *strings, const char *text)
{
    size_t size = strlen(text) + 1;

    if (size == 1 || strings->error != 0)
        return 0;
    uint32_t *place = find_place(strings, text, size);
    if (*place != 0)
        return *place;
    if (size > UINT32_MAX - strings->size) {
        strings->error = PMIXFAB_ERR_RANGE;
        return 0;
    }
    /* the table stays at most half full */
    if (!grow_text(strings, size) || (2 * strings->n >= strings->mask && !grow_table(strings))) {
        strings->error = PMIXFAB_ERR_NOMEM;
        return 0;
    }
    uint32_t offset = strings->size;
    memcpy(strings->text + offset, text, size);
    *find_place(strings, text, size) = offset;
    strings->size += (uint32_t)size;
    strings->n++;
    return offset;
}
