/* nearest.h - which word may be meant by one that is none. */
#ifndef FABRICD_CONFIG_NEAREST_H
#define FABRICD_CONFIG_NEAREST_H

#include <stddef.h>

/* The word that is one or two letters away; NULL: none is. */
const char *nearest_word(const char *word, const char *const *words, size_t n);

#endif
