/* text.c - making what others said fit for a line of text. */
#include "topo/base/text.h"

#include <string.h>

/* Length of the well-formed UTF-8 character at s (RFC 3629), 0 where there is none. */
static size_t utf8_char_length(const unsigned char *s, size_t len)
{
    unsigned lead = s[0];
    size_t need;
    unsigned low = 0x80, high = 0xbf; /* what the second byte may be */

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
static int is_control(const unsigned char *s, size_t n)
{
    return n == 1 ? s[0] < 0x20 || s[0] == 0x7f : n == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

size_t fab_text_clean(char *out, size_t size, const char *text, size_t len, const char *also)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t used = 0;

    if (size == 0)
        return 0;
    for (size_t i = 0; i < len && s[i] != 0;) {
        size_t n = utf8_char_length(s + i, len - i);
        int bad = n == 0 || is_control(s + i, n) || (n == 1 && also != NULL && strchr(also, s[i]) != NULL);
        size_t put = bad ? 1 : n;
        if (used + put >= size)
            break;
        if (bad)
            out[used] = '?';
        else
            memmove(out + used, s + i, n);
        used += put;
        i += n == 0 ? 1 : n;
    }
    out[used] = '\0';
    return used;
}
