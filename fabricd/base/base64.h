/* base64.h - bytes in JSON: RFC 4648, with its padding, nothing else in it. */
#ifndef FABRICD_BASE_BASE64_H
#define FABRICD_BASE_BASE64_H

#include <stddef.h>

/* Length of n bytes written so. */
#define BASE64_LENGTH(n) (((n) + 2) / 3 * 4)

/* free() it; NULL: no memory. */
char *base64_encode(const void *bytes, size_t size);

/* free(*bytes). PMIXFAB_ERR_SYNTAX: the text is not that; _NOMEM. */
int base64_decode(const char *text, size_t len, void **bytes, size_t *size);

#endif
