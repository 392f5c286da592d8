/* text.h - sanitize text from a device, a file or a peer for one line of output. */
#ifndef FAB_TOPO_BASE_TEXT_H
#define FAB_TOPO_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Copy `len` bytes of text (up to the first 0 byte) to out and terminate it. `out` may be `text`. Text that
 * does not fit is cut between characters. Return the length of the result. These become '?':
 * - control characters and invisible characters
 * - characters that change the direction of writing
 * - bytes that are not UTF-8
 * - each character of `also` (ASCII; may be NULL)
 */
size_t fab_text_clean(char *out, size_t size, const char *text, size_t len, const char *also);

/* Return the text without blanks and control characters at both ends; *len becomes its length. */
const char *fab_text_trim(const char *text, size_t *len);

/*
 * Return whether the text is UTF-8 without control characters. Invisible characters are allowed: the sender
 * counts their bytes.
 */
bool fab_text_is_utf8(const char *text, size_t len);

/* Return 0 to 15, or -1 if c is not a hexadecimal digit. */
static inline int fab_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

#endif
