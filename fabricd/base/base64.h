/* base64.h - bytes in JSON, as base64 of RFC 4648: with padding, without blanks or line breaks. */
#ifndef FABRICD_BASE_BASE64_H
#define FABRICD_BASE_BASE64_H

#include <stddef.h>

/* Length of the encoding of n bytes. */
#define BASE64_LENGTH(n) (((n) + 2) / 3 * 4)

/* Encode. Free the result with free(). NULL: no memory. */
char *base64_encode(const void *bytes, size_t size);

/* Decode. Free *bytes with free(). PMIXFAB_ERR_SYNTAX: the text is not base64; _NOMEM. */
int base64_decode(const char *text, size_t len, void **bytes, size_t *size);

#endif
