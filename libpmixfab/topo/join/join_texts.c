/* join_texts.c - texts, each once. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/array.h"
#include "topo/join/join_state.h"

static int grow_slots(struct join_texts *t)
{
    uint32_t n_slots = t->n_slots == 0 ? 1024 : t->n_slots * 4;
    struct join_slot *slots = calloc(n_slots, sizeof(*slots));
    if (slots == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < t->n_slots; i++) {
        uint32_t at = t->slots[i].hash & (n_slots - 1);
        while (t->slots[i].offset != 0 && slots[at].offset != 0)
            at = (at + 1) & (n_slots - 1);
        if (t->slots[i].offset != 0)
            slots[at] = t->slots[i];
    }
    free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    return PMIXFAB_OK;
}

static int join_texts_append(struct join_texts *t, const char *text, size_t len, uint32_t *offset)
{
    if (t->size + len + 1 > UINT32_MAX / 2)
        return PMIXFAB_ERR_RANGE;
    if (!FAB_ARRAY_ROOM(&t->pool, &t->cap, t->size + len + 1))
        return PMIXFAB_ERR_NOMEM;
    *offset = t->size;
    memcpy(t->pool + t->size, text, len + 1);
    t->size += (uint32_t)len + 1;
    return PMIXFAB_OK;
}

static int find_text(struct join_texts *t, const char *text, uint32_t *offset)
{
    size_t len = strlen(text);
    uint32_t hash = (uint32_t)XXH3_64bits_withSeed(text, len, t->seed);
    if (2 * (uint64_t)t->n >= t->n_slots && grow_slots(t) != PMIXFAB_OK)
        return PMIXFAB_ERR_NOMEM;
    uint32_t at = hash & (t->n_slots - 1);
    for (; t->slots[at].offset != 0; at = (at + 1) & (t->n_slots - 1)) {
        *offset = t->slots[at].offset;
        if (t->slots[at].hash == hash && strcmp(t->pool + *offset, text) == 0)
            return PMIXFAB_OK;
    }
    int rc = join_texts_append(t, text, len, offset);
    if (rc == PMIXFAB_OK) {
        t->slots[at] = (struct join_slot){hash, *offset};
        t->n++;
    }
    return rc;
}

int join_texts_add(struct join_texts *t, unsigned kind, const char *text, uint32_t *offset)
{
    *offset = t->last[kind];
    if (*offset != 0 && strcmp(t->pool + *offset, text) == 0)
        return PMIXFAB_OK;
    int rc = find_text(t, text, offset);
    t->last[kind] = rc == PMIXFAB_OK ? *offset : 0;
    return rc;
}

int join_texts_begin(struct join_texts *t)
{
    uint32_t none;
    int rc = PMIXFAB_OK;
    if (t->n_slots == 0)
        rc = grow_slots(t);
    t->seed = (uint64_t)(uintptr_t)t->slots * UINT64_C(0x9e3779b97f4a7c15);
    return rc == PMIXFAB_OK ? join_texts_append(t, "", 0, &none) : rc;
}

void join_texts_free(struct join_texts *t)
{
    free(t->pool);
    free(t->slots);
    memset(t, 0, sizeof(*t));
}
