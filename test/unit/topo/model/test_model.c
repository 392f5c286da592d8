/* Words and numbers of the model, texts made fit for a line, the log. */
#include "test/unit/handmade.h"
#include "topo/base/library_log.h"
#include "topo/base/text.h"

TEST(test_rates)
{
    assert_int_equal(fab_rate_mbps(4, FAB_SDR), 10000);
    assert_int_equal(fab_rate_mbps(4, FAB_DDR), 20000);
    assert_int_equal(fab_rate_mbps(4, FAB_QDR), 40000);
    assert_int_equal(fab_rate_mbps(4, FAB_FDR10), 40000);
    assert_int_equal(fab_rate_mbps(4, FAB_FDR), 56000);
    assert_int_equal(fab_rate_mbps(4, FAB_EDR), 100000);
    assert_int_equal(fab_rate_mbps(4, FAB_HDR), 200000);
    assert_int_equal(fab_rate_mbps(2, FAB_HDR), 100000);
    assert_int_equal(fab_rate_mbps(4, FAB_NDR), 400000);
    assert_int_equal(fab_rate_mbps(4, FAB_XDR), 800000);
    assert_int_equal(fab_rate_mbps(12, FAB_XDR), 2400000);
    assert_int_equal(fab_rate_mbps(1, FAB_SDR), 2500);
    assert_int_equal(fab_rate_mbps(8, FAB_EDR), 200000);
    assert_int_equal(fab_rate_mbps(0, FAB_HDR), 0);
    assert_int_equal(fab_rate_mbps(3, FAB_HDR), 0);
    assert_int_equal(fab_rate_mbps(4, FAB_SPEED_UNKNOWN), 0);
    assert_int_equal(fab_rate_mbps(4, (enum fab_speed)200), 0);
}

TEST(test_rates_of_ethernet)
{
    static const struct {
        uint64_t mbps;
        unsigned width;
        enum fab_speed speed;
        bool exact;
    } rates[] = {
        {1000, 1, FAB_1GE, true},   {2500, 1, FAB_SDR, true},          {5000, 1, FAB_DDR, true},
        {10000, 1, FAB_QDR, true},  {20000, 2, FAB_QDR, true},         {25000, 1, FAB_EDR, true},
        {40000, 4, FAB_QDR, true},  {50000, 1, FAB_HDR, true},         {56000, 4, FAB_FDR, true},
        {100000, 4, FAB_EDR, true}, {200000, 4, FAB_HDR, true},        {400000, 4, FAB_NDR, true},
        {800000, 4, FAB_XDR, true}, {100, 1, FAB_1GE, false},          {1, 1, FAB_1GE, false},
        {3000, 1, FAB_SDR, false},  {26000, 1, FAB_EDR, false},        {0, 0, FAB_SPEED_UNKNOWN, false},
        {4000, 4, FAB_1GE, true},   {99999999999, 12, FAB_XDR, false},
    };
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        unsigned width = 99;
        enum fab_speed speed = FAB_SPEEDS;
        assert_int_equal(fab_rate_parse(rates[i].mbps, &width, &speed), rates[i].exact);
        assert_int_equal(width, rates[i].width);
        assert_int_equal(speed, rates[i].speed);
        if (rates[i].exact)
            assert_int_equal(fab_rate_mbps(width, speed), rates[i].mbps);
    }
    for (unsigned w = 1; w <= 12; w++)
        for (enum fab_speed s = FAB_SDR; s < FAB_SPEEDS; s++) {
            unsigned width;
            enum fab_speed speed;
            if (fab_rate_mbps(w, s) == 0)
                continue;
            assert_true(fab_rate_parse(fab_rate_mbps(w, s), &width, &speed));
            assert_int_equal(fab_rate_mbps(width, speed), fab_rate_mbps(w, s));
        }
}

TEST(test_speeds_by_name)
{
    for (int s = FAB_SDR; s < FAB_SPEEDS; s++) {
        const char *name = fab_speed_name((enum fab_speed)s);
        assert_int_equal(fab_speed_parse(name, strlen(name)), s);
        assert_int_equal(fab_speed_parse(name, strlen(name) - 1), FAB_SPEED_UNKNOWN);
        if (s > FAB_SDR && s <= FAB_XDR)
            assert_true(fab_rate_mbps(1, (enum fab_speed)s) >= fab_rate_mbps(1, (enum fab_speed)(s - 1)));
    }
    assert_int_equal(fab_speed_parse("FDR10", 3), FAB_FDR);
    assert_int_equal(fab_speed_parse("hdr", 3), FAB_SPEED_UNKNOWN);
    assert_int_equal(fab_speed_parse("", 0), FAB_SPEED_UNKNOWN);
    assert_int_equal(fab_speed_parse("?", 1), FAB_SPEED_UNKNOWN);
    assert_string_equal(fab_speed_name(FAB_SPEED_UNKNOWN), "?");
    assert_string_equal(fab_speed_name((enum fab_speed)99), "?");
}

TEST(test_every_error_has_words_of_its_own)
{
    for (int a = PMIXFAB_OK; a >= PMIXFAB_ERR_UNSUPPORTED; a--) {
        assert_string_not_equal(pmixfab_strerror(a), "unknown error");
        for (int b = PMIXFAB_OK; b > a; b--)
            assert_string_not_equal(pmixfab_strerror(a), pmixfab_strerror(b));
    }
    assert_string_equal(pmixfab_strerror(PMIXFAB_ERR_UNSUPPORTED - 1), "unknown error");
    assert_string_equal(pmixfab_strerror(1), "unknown error");
    assert_string_equal(pmixfab_version(), PMIXFAB_VERSION);
    assert_string_equal(PMIXFAB_VERSION,
                        printed("%d.%d.%d", PMIXFAB_VERSION_NUMBER >> 16, PMIXFAB_VERSION_NUMBER >> 8 & 0xff,
                                PMIXFAB_VERSION_NUMBER & 0xff));
}

TEST(test_fail)
{
    struct fab_err err;
    char longest[2000];

    assert_int_equal(fab_fail(NULL, PMIXFAB_ERR_IO, "nobody reads %d", 1), PMIXFAB_ERR_IO);
    assert_int_equal(fab_fail(&err, PMIXFAB_ERR_SYNTAX, "a\nb\x1b[31m %s", "caf\xc3\xa9 \xff"),
                     PMIXFAB_ERR_SYNTAX);
    assert_string_equal(err.text, "a?b?[31m caf\xc3\xa9 ?");
    fab_fail(&err, PMIXFAB_ERR_SYNTAX, "in front: %s", err.text); /* its own text is a fair argument */
    assert_string_equal(err.text, "in front: a?b?[31m caf\xc3\xa9 ?");
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    fab_fail(&err, PMIXFAB_ERR_IO, "%s", longest);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

/* The same by decoding to code points: slow and plain. Returns the length of the character at s, 0: none. */
static size_t plain_character(const unsigned char *s, size_t len, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;

    if (n == 0 || n > len)
        return 0;
    *code = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (s[i] >> 6 != 2)
            return 0;
        *code = *code << 6 | (s[i] & 0x3f);
    }
    if (*code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff))
        return 0;
    return n;
}

/* As Unicode lists them, each by itself (DerivedCoreProperties, UnicodeData: Zl, Zp, Cf). */
static bool plain_unseen(uint32_t code)
{
    static const uint32_t some[] = {0x00ad, 0x034f, 0x061c, 0x115f, 0x1160, 0x17b4,
                                    0x17b5, 0x3164, 0xfeff, 0xffa0, 0x2028, 0x2029};
    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
        if (code == some[i])
            return true;
    return code >> 4 == 0xfe0 || code >> 4 == 0x206 || (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x200b && code <= 0x200f) || (code >= 0x180b && code <= 0x180f) ||
           (code >= 0xfff0 && code <= 0xfffb) || (code >= 0x1bca0 && code <= 0x1bca3) ||
           (code >= 0x1d173 && code <= 0x1d17a) || code >> 12 == 0xe0;
}

static size_t plain_encode(uint32_t code, char *out)
{
    const unsigned more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[more] | code >> (6 * more));
    for (unsigned i = 1; i <= more; i++)
        out[i] = (char)(0x80 | (code >> (6 * (more - i)) & 0x3f));
    return more + 1;
}

static void plain_clean(char *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len && text[i] != '\0';) {
        uint32_t code = 0;
        size_t n = plain_character((const unsigned char *)text + i, len - i, &code);
        if (n == 0 || code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == ',' || plain_unseen(code)) {
            *out++ = '?';
        } else {
            memcpy(out, text + i, n);
            out += n;
        }
        i += n == 0 ? 1 : n;
    }
    *out = '\0';
}

TEST(test_clean_against_a_plain_decoder)
{
    static const unsigned char interesting[] = {0x00, 0x1f, 0x20, ',',  'a',  0x7f, 0x80, 0x8f,
                                                0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf,
                                                0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff};
    uint64_t seed = 5;

    for (int round = 0; round < 60000; round++) {
        char text[12], quick[13], plain[13];
        size_t len = fabric_random_next(&seed) % (sizeof(text) + 1);
        for (size_t i = 0; i < len; i++) {
            uint64_t r = fabric_random_next(&seed);
            text[i] = (char)(r & 1 ? interesting[(r >> 8) % sizeof(interesting)] : r >> 8);
        }
        size_t n = fab_text_clean(quick, sizeof(quick), text, len, ",;");
        assert_int_equal(n, strlen(quick));
        for (size_t i = 0; i < len; i++)
            text[i] = text[i] == ';' ? ',' : text[i];
        plain_clean(plain, text, len);
        assert_string_equal(quick, plain);
    }
}

/* Every character there is: it stays, or is a '?', and in what is sent it may be anyway. */
TEST(test_clean_of_what_nobody_sees)
{
    for (uint32_t code = 1; code <= 0x10ffff; code++) {
        char text[4], clean[8], plain[8];
        const size_t len = plain_encode(code, text);
        const bool is_text = code >= 0x20 && (code < 0x7f || code > 0x9f) && (code < 0xd800 || code > 0xdfff);
        fab_text_clean(clean, sizeof(clean), text, len, ",");
        plain_clean(plain, text, len);
        assert_string_equal(clean, plain);
        assert_int_equal(fab_text_is_utf8(text, len), is_text);
    }
    assert_false(fab_text_is_utf8("\xe2\x80", 2));
}

TEST(test_clean_cuts_between_characters)
{
    char out[5], one[1];
    assert_int_equal(fab_text_clean(out, sizeof(out), "ab\xe2\x82\xac", 5, NULL), 2);
    assert_string_equal(out, "ab");
    assert_int_equal(fab_text_clean(out, sizeof(out),
                                    "a\xe2\x82\xac"
                                    "b",
                                    5, NULL),
                     4);
    assert_string_equal(out, "a\xe2\x82\xac");
    assert_int_equal(fab_text_clean(one, sizeof(one), "x", 1, NULL), 0);
    assert_int_equal(one[0], 0);
    assert_int_equal(fab_text_clean(NULL, 0, "x", 1, NULL), 0);
}

static char logged[1100];
static enum pmixfab_level logged_level;
static int n_logged;

static void keep(enum pmixfab_level level, const char *line, void *cbdata)
{
    snprintf(logged, sizeof(logged), "%s", line);
    logged_level = level;
    (*(int *)cbdata)++;
}

TEST(test_log)
{
    char longest[3000];

    fab_log(PMIXFAB_LOG_ERROR, "nobody listens");
    pmixfab_set_log(keep, &n_logged);
    fab_log(PMIXFAB_LOG_WARNING, "host %s\n", "a\tb");
    assert_int_equal(n_logged, 1);
    assert_int_equal(logged_level, PMIXFAB_LOG_WARNING);
    assert_string_equal(logged, "host a?b?");
    memset(longest, 'y', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    fab_log(PMIXFAB_LOG_DEBUG, "%s", longest);
    assert_int_equal(strlen(logged), 1000);
    pmixfab_set_log(NULL, NULL);
    fab_log(PMIXFAB_LOG_ERROR, "nobody listens any more");
    assert_int_equal(n_logged, 2);
}
