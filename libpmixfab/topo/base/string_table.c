#include "topo/base/string_table.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

int fab_strings_init(struct fab_strings *strings)
{
    *strings = (struct fab_strings){.size = 1, .cap = 4096, .mask = 1023};
    strings->text = calloc(strings->cap, 1);
    strings->places = calloc(strings->mask + 1u, sizeof(*strings->places));
    if (strings->text == NULL || strings->places == NULL)
        strings->error = PMIXFAB_ERR_NOMEM;
    strings->seed = (uint64_t)(uintptr_t)strings->places * UINT64_C(0x9e3779b97f4a7c15);
    return strings->error;
}

int fab_strings_begin(struct fab_strings *strings, const char *section, uint32_t size)
{
    *strings = (struct fab_strings){.size = size, .kept = size, .cap = (size_t)size + 4096};
    strings->text = malloc(strings->cap);
    strings->used = calloc((size_t)size / 64 + 1, sizeof(*strings->used));
    if (strings->text == NULL || strings->used == NULL)
        strings->error = PMIXFAB_ERR_NOMEM;
    else
        memcpy(strings->text, section, size);
    return strings->error;
}

void fab_strings_destroy(struct fab_strings *strings)
{
    free(strings->text);
    free(strings->places);
    free(strings->used);
    *strings = (struct fab_strings){0};
}

/* Return the place of a text in the table, or the free place for it. `size` includes the terminating 0. */
static uint32_t *string_table_place(const struct fab_strings *strings, const char *text, size_t size)
{
    uint32_t at = (uint32_t)XXH3_64bits_withSeed(text, size, strings->seed) & strings->mask;

    while (strings->places[at] != 0 && strcmp(strings->text + strings->places[at], text) != 0)
        at = (at + 1) & strings->mask;
    return &strings->places[at];
}

/* Make another table. The strings follow each other, so the old table is not needed for this. */
static bool make_table(struct fab_strings *strings, uint32_t mask)
{
    uint32_t *places = calloc((size_t)mask + 1, sizeof(*places));

    if (places == NULL)
        return false;
    free(strings->places);
    strings->places = places;
    strings->mask = mask;
    strings->seed = (uint64_t)(uintptr_t)places * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t offset = 1; offset < strings->size;) {
        size_t size = strlen(strings->text + offset) + 1;
        *string_table_place(strings, strings->text + offset, size) = offset;
        offset += (uint32_t)size;
    }
    return true;
}

/* Make a table of the strings present at the start, at most half full. */
static bool first_table(struct fab_strings *strings)
{
    uint32_t mask = 1023;

    strings->n = 0;
    for (uint32_t i = 1; i < strings->size; i++)
        strings->n += strings->text[i] == '\0';
    while (mask / 2 < strings->n)
        mask = 2 * mask + 1;
    return make_table(strings, mask);
}

static bool grow_text(struct fab_strings *strings, size_t size)
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

/* Count a text as used. `size` includes the terminating 0. */
static uint32_t string_table_use(struct fab_strings *strings, uint32_t offset, size_t size)
{
    uint64_t bit = UINT64_C(1) << offset % 64;

    if (offset < strings->kept && (strings->used[offset / 64] & bit) == 0) {
        strings->used[offset / 64] |= bit;
        strings->in_use += (uint32_t)size;
    }
    return offset;
}

#define FEW 8u /* new texts found by search: building a table of all strings would take longer */

/* Search without a table and return the offset of the text; 0 if it is not there. Each string follows a 0. */
static uint32_t string_table_search(const struct fab_strings *strings, const char *text, size_t size)
{
    char around[256];

    if (size >= sizeof(around))
        return 0; /* a text of this size may be stored twice */
    around[0] = '\0';
    memcpy(around + 1, text, size);
    const char *found = memmem(strings->text, strings->size, around, size + 1);
    return found == NULL ? 0 : (uint32_t)(found + 1 - strings->text);
}

static uint32_t string_table_append(struct fab_strings *strings, const char *text, size_t size)
{
    uint32_t offset = strings->size;

    if (size > UINT32_MAX - offset) {
        strings->error = PMIXFAB_ERR_RANGE;
        return 0;
    }
    if (!grow_text(strings, size)) {
        strings->error = PMIXFAB_ERR_NOMEM;
        return 0;
    }
    memcpy(strings->text + offset, text, size);
    strings->size += (uint32_t)size;
    return offset;
}

/* Make room for one string; the table stays at most half full. */
static bool make_place(struct fab_strings *strings)
{
    if (strings->places == NULL)
        return first_table(strings);
    return 2 * strings->n < strings->mask || make_table(strings, 2 * strings->mask + 1);
}

uint32_t fab_strings_add(struct fab_strings *strings, const char *text)
{
    size_t size = strlen(text) + 1;
    uint32_t offset;

    if (size == 1 || strings->error != 0)
        return 0;
    if (strings->places == NULL && strings->searched < FEW) {
        strings->searched++;
        offset = string_table_search(strings, text, size);
        return offset != 0 ? string_table_use(strings, offset, size)
                           : string_table_append(strings, text, size);
    }
    if (!make_place(strings)) {
        strings->error = PMIXFAB_ERR_NOMEM;
        return 0;
    }
    uint32_t *place = string_table_place(strings, text, size);
    if (*place != 0)
        return string_table_use(strings, *place, size);
    offset = string_table_append(strings, text, size);
    if (offset != 0) {
        *place = offset;
        strings->n++;
    }
    return offset;
}

uint32_t fab_strings_take(struct fab_strings *strings, uint32_t offset, const char *text)
{
    if (offset == 0 || offset >= strings->kept || strings->error != 0 || text[0] == '\0' ||
        strcmp(strings->text + offset, text) != 0)
        return fab_strings_add(strings, text);
    return string_table_use(strings, offset, strlen(text) + 1);
}

bool fab_strings_untidy(const struct fab_strings *strings)
{
    uint64_t ours = (uint64_t)strings->in_use + (strings->size - strings->kept);
    uint64_t idle = strings->size > ours ? strings->size - ours : 0;
    return strings->kept > 0 && idle > 4096 && idle > ours / 8;
}
