/* nearest_words.h - which word may be meant by one that is none. */
#ifndef FAB_TOPO_BASE_NEAREST_WORDS_H
#define FAB_TOPO_BASE_NEAREST_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* The word that is one or two letters away; NULL: none is. */
const char *fab_nearest_word(const char *word, const char *const *words, size_t n);

/* The same for one word after the other: is `candidate` nearer than *best, which begins with FAB_NEAR + 1 and
 * becomes its distance? */
#define FAB_NEAR 2
bool fab_is_nearer(const char *word, const char *candidate, size_t *best);

#endif
