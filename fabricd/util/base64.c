#include "fabricd/util/base64.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pmixfab.h"

/* The value of a digit, or -1. */
static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
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
    /* Bits behind the last byte would be a second way to write the same. */
    if ((padding == 1 && (bits & 0xff) != 0) || (padding == 2 && (bits & 0xffff) != 0)) {
        free(out);
        return PMIXFAB_ERR_SYNTAX;
    }
    *bytes = out;
    *size = len / 4 * 3 - padding;
    return PMIXFAB_OK;
}
