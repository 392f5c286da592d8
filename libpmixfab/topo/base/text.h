/*
 * text.h - making what a device, a file or a peer said fit for a line of text.
 */
#ifndef FAB_TOPO_BASE_TEXT_H
#define FAB_TOPO_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Copy `len` bytes of text (up to the first byte 0) to out, which always ends with a 0. Control characters,
 * characters that nobody sees or that turn the direction of writing, bytes that are not UTF-8 and every
 * character of `also` (ASCII; may be NULL) become '?'. What does not fit is cut, never inside a character.
 * `out` may be `text`. Returns the length of the result.
 */
size_t fab_text_clean(char *out, size_t size, const char *text, size_t len, const char *also);

/* The text without the blanks and control characters at its ends; *len becomes its length. */
const char *fab_text_trim(const char *text, size_t *len);

/* UTF-8 without control characters? What nobody sees may be in it: those who sent it count its bytes. */
bool fab_text_is_utf8(const char *text, size_t len);

/* 0 to 15; -1: it is none. */
static inline int fab_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

#endif
