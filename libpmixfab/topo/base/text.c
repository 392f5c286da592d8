/* text.c - sanitize text from others for one line of output. */
#include "topo/base/text.h"

#include <string.h>

/* Return the length of the well-formed UTF-8 character at s (RFC 3629); 0 if there is none. */
static size_t utf8_char_length(const unsigned char *s, size_t len)
{
    unsigned lead = s[0];
    size_t need;
    unsigned low = 0x80, high = 0xbf; /* allowed values of the second byte */

    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead <= 0xdf) {
        need = 2;
    } else if (lead >= 0xe0 && lead <= 0xef) {
        need = 3;
        if (lead == 0xe0)
            low = 0xa0;
        else if (lead == 0xed)
            high = 0x9f;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
        need = 4;
        if (lead == 0xf0)
            low = 0x90;
        else if (lead == 0xf4)
            high = 0x8f;
    } else {
        return 0;
    }
    if (len < need || s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < need; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    return need;
}

/* C0, DEL, and C1 (U+0080 to U+009F, two bytes). */
static bool is_control(const unsigned char *s, size_t n)
{
    return n == 1 ? s[0] < 0x20 || s[0] == 0x7f : n == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

/* Return the code point of a character of n >= 2 bytes. */
static unsigned utf8_code(const unsigned char *s, size_t n)
{
    unsigned code = s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        code = code << 6 | (s[i] & 0x3fu);
    return code;
}

/*
 * Return whether a character is invisible: two names that differ only in such characters look equal. These
 * are Unicode's Default_Ignorable_Code_Point (no width, or changes the direction), separators of lines and
 * paragraphs, and annotation marks.
 */
static bool is_unseen(const unsigned char *s, size_t n)
{
    static const struct {
        unsigned first, last;
    } unseen[] = {{0xad, 0xad},      {0x34f, 0x34f},   {0x61c, 0x61c},     {0x115f, 0x1160},
                  {0x17b4, 0x17b5},  {0x180b, 0x180f}, {0x200b, 0x200f},   {0x2028, 0x202e},
                  {0x2060, 0x206f},  {0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
                  {0xffa0, 0xffa0},  {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
                  {0xe0000, 0xe0fff}};
    const unsigned code = utf8_code(s, n);
    size_t i = 0;
    while (i < sizeof(unseen) / sizeof(unseen[0]) && code > unseen[i].last)
        i++;
    return i < sizeof(unseen) / sizeof(unseen[0]) && code >= unseen[i].first;
}

size_t fab_text_clean(char *out, size_t size, const char *text, size_t len, const char *also)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t used = 0;

    if (size == 0)
        return 0;
    for (size_t i = 0; i < len && s[i] != 0;) {
        const bool plain = s[i] >= 0x20 && s[i] < 0x7f; /* most bytes: accept them at once */
        size_t n = plain ? 1 : utf8_char_length(s + i, len - i);
        bool bad = plain ? also != NULL && strchr(also, s[i]) != NULL
                         : n == 0 || is_control(s + i, n) || (n > 1 && is_unseen(s + i, n));
        size_t put = bad ? 1 : n;
        if (used + put >= size)
            break;
        if (bad)
            out[used] = '?';
        else if (plain)
            out[used] = text[i];
        else
            memmove(out + used, s + i, n);
        used += put;
        i += n == 0 ? 1 : n;
    }
    out[used] = '\0';
    return used;
}

bool fab_text_is_utf8(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    for (size_t i = 0, n; i < len; i += n) {
        n = utf8_char_length(s + i, len - i);
        if (n == 0 || is_control(s + i, n))
            return false;
    }
    return true;
}

/* Bytes of UTF-8 are neither, whether char is signed or not. */
static bool is_blank_or_control(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7f;
}

const char *fab_text_trim(const char *text, size_t *len)
{
    const char *end = text + *len;
    while (end > text && is_blank_or_control(end[-1]))
        end--;
    while (text < end && is_blank_or_control(*text))
        text++;
    *len = (size_t)(end - text);
    return text;
}
