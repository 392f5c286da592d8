#include "fabricd/base/base64.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pmixfab.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    char *text = malloc(BASE64_LENGTH(size) + 1), *to = text;
    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < size; i += 3) {
        size_t n = size - i < 3 ? size - i : 3;
        uint32_t three = (uint32_t)from[i] << 16;
        three |= n > 1 ? (uint32_t)from[i + 1] << 8 : 0;
        three |= n > 2 ? (uint32_t)from[i + 2] : 0;
        *to++ = digits[three >> 18];
        *to++ = digits[three >> 12 & 63];
        *to++ = n > 1 ? digits[three >> 6 & 63] : '=';
        *to++ = n > 2 ? digits[three & 63] : '=';
    }
    *to = '\0';
    return text;
}

/* Return the value of a digit, or -1. */
static int base64_digit(char c)
{
    const char *found = c == '\0' ? NULL : strchr(digits, c);
    return found == NULL ? -1 : (int)(found - digits);
}

int base64_decode(const char *text, size_t len, void **bytes, size_t *size)
{
    size_t padding = 0;
    *bytes = NULL;
    *size = 0;
    if (len % 4 != 0)
        return PMIXFAB_ERR_SYNTAX;
    while (padding < 2 && padding < len && text[len - 1 - padding] == '=')
        padding++;
    uint8_t *out = malloc(len / 4 * 3 + 1);
    if (out == NULL)
        return PMIXFAB_ERR_NOMEM;
    uint32_t bits = 0;
    for (size_t i = 0; i < len; i++) {
        int value = i >= len - padding ? 0 : base64_digit(text[i]);
        if (value < 0) {
            free(out);
            return PMIXFAB_ERR_SYNTAX;
        }
        bits = bits << 6 | (uint32_t)value;
        if (i % 4 != 3)
            continue;
        out[i / 4 * 3] = (uint8_t)(bits >> 16);
        out[i / 4 * 3 + 1] = (uint8_t)(bits >> 8);
        out[i / 4 * 3 + 2] = (uint8_t)bits;
    }
    /* Unused bits must be zero: each value has one encoding only. */
    if ((padding == 1 && (bits & 0xff) != 0) || (padding == 2 && (bits & 0xffff) != 0)) {
        free(out);
        return PMIXFAB_ERR_SYNTAX;
    }
    *bytes = out;
    *size = len / 4 * 3 - padding;
    return PMIXFAB_OK;
}
