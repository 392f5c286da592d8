#include "topo/base/nearest_words.h"

#include <string.h>

#define LONGEST 40

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Return how many letters must be added, removed or replaced (Levenshtein). */
static size_t letters_away(const char *a, const char *b)
{
    size_t row[LONGEST + 1];
    const size_t n = strlen(b);
    for (size_t k = 0; k <= n; k++)
        row[k] = k;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t before = row[0];
        row[0] = i + 1;
        for (size_t k = 0; k < n; k++) {
            const size_t replaced = before + (a[i] != b[k]);
            before = row[k + 1];
            row[k + 1] = least(replaced, least(row[k], before) + 1);
        }
    }
    return row[n];
}

bool fab_is_nearer(const char *word, const char *candidate, size_t *best)
{
    if (strlen(word) > LONGEST || strlen(candidate) > LONGEST)
        return false;
    const size_t away = letters_away(word, candidate);
    if (away >= *best || away >= strlen(candidate))
        return false;
    *best = away;
    return true;
}

const char *fab_nearest_word(const char *word, const char *const *words, size_t n)
{
    size_t best = FAB_NEAR + 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < n; i++)
        if (fab_is_nearer(word, words[i], &best))
            nearest = words[i];
    return nearest;
}
