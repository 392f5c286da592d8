/* nearest_words.h - suggestions for a misspelled word. */
#ifndef FAB_TOPO_BASE_NEAREST_WORDS_H
#define FAB_TOPO_BASE_NEAREST_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Return the word that is one or two letters away; NULL if there is none. */
const char *fab_nearest_word(const char *word, const char *const *words, size_t n);

/*
 * As above, one word at a time: return whether `candidate` is nearer than *best, and store its distance
 * there. *best starts at FAB_NEAR + 1.
 */
#define FAB_NEAR 2
bool fab_is_nearer(const char *word, const char *candidate, size_t *best);

#endif
