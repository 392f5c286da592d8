/* Bytes in JSON, held against a plain encoder; and what is not that is refused. */

#include "fabricd/base/base64.h"
#include "pmixfab.h"
#include "test/fabrics/fabrics.h"
#include "test/unit/test.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Bit by bit. */
static size_t encode(const uint8_t *bytes, size_t n, char *text)
{
    size_t len = 0;
    for (size_t bit = 0; bit < 8 * n; bit += 6) {
        unsigned value = 0;
        for (size_t b = bit; b < bit + 6; b++)
            value = value << 1 | (b < 8 * n ? bytes[b / 8] >> (7 - b % 8) & 1u : 0u);
        text[len++] = digits[value];
    }
    while (len % 4 != 0)
        text[len++] = '=';
    text[len] = '\0';
    return len;
}

TEST(there_and_back)
{
    uint64_t random = 3;
    for (size_t n = 0; n < 300; n++) {
        uint8_t bytes[300];
        char text[500];
        OWNED(free) void *got;
        size_t size;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)(fabric_random_next(&random) >> 20);
        size_t len = encode(bytes, n, text);
        assert_int_equal(len, BASE64_LENGTH(n));
        assert_int_equal(base64_decode(text, len, &got, &size), PMIXFAB_OK);
        assert_int_equal(size, n);
        assert_memory_equal(got, bytes, n);
        OWNED(free) char *written = base64_encode(bytes, n);
        assert_string_equal(written, text);
    }
}

TEST(nothing_else)
{
    static const char *const bad[] = {
        "A",    "AA",   "AAA",  "=",    "====",  "A===",     "AA=A",  "AB==",
        "AAB=", "AA-A", "AA_A", "AA A", "AAA\n", "AA==AAAA", "AAAAA", "\xff\xff\xff\xff"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        void *got = &got;
        size_t size = 1;
        if (base64_decode(bad[i], strlen(bad[i]), &got, &size) != PMIXFAB_ERR_SYNTAX)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_null(got);
        assert_int_equal(size, 0);
    }
}
