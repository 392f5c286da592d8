/* Strings as fabricctl shows them. */

#include <wchar.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/show/show.h"
#include "test/fabrics/fabrics.h"
#include "test/unit/test.h"

static void check_clean(const char *raw, const char *clean)
{
    OWNED(free) char *copy = ctl_clean_copy(raw);

    assert_non_null(copy);
    assert_string_equal(copy, clean);
}

TEST(test_clean)
{
    check_clean("", "");
    check_clean("leaf1", "leaf1");
    check_clean("a\tb\nc\x7f", "a?b?c?");
    check_clean("\x1b[31mred\x1b[0m", "?[31mred?[0m");
    check_clean("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    check_clean("\xc2\x9b"
                "31m",
                "?31m");                     /* the C1 form of ESC [ */
    check_clean("\xc2\xa0", "\xc2\xa0");     /* the first that is no control character */
    check_clean("\xff\xfe", "??");           /* never in UTF-8 */
    check_clean("\xc3", "?");                /* cut off */
    check_clean("\xe2\x82", "??");           /* cut off */
    check_clean("\xc0\x80", "??");           /* overlong */
    check_clean("\xe0\x9f\xbf", "???");      /* overlong */
    check_clean("\xf0\x8f\xbf\xbf", "????"); /* overlong */
    check_clean("\xed\xa0\x80", "???");      /* a surrogate */
    check_clean("\xf4\x90\x80\x80", "????"); /* past the last */
    check_clean("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf");
    check_clean("no\xe2\x80\xae"
                "1eddo\xe2\x80\x8b",
                "no?1eddo?"); /* shows as "noodde1" */
}

static void check_csv(const char *text, const char *field)
{
    OWNED(free) char *made = NULL;
    size_t size;
    FILE *out = open_memstream(&made, &size);

    assert_non_null(out);
    ctl_csv_field(out, text);
    fclose(out);
    assert_string_equal(made, field);
}

TEST(test_csv)
{
    check_csv("", "");
    check_csv("plain text;x", "plain text;x");
    check_csv("a,b", "\"a,b\"");
    check_csv("say \"no\"", "\"say \"\"no\"\"\"");
    check_csv("two\nlines", "\"two\nlines\"");
    check_csv("\"", "\"\"\"\"");
    check_csv("=1+1", "\"'=1+1\"");
    check_csv("@SUM(A1)", "\"'@SUM(A1)\"");
    check_csv("+cmd|' /C calc'!A0", "\"'+cmd|' /C calc'!A0\"");
    check_csv("-2+3,\"x\"", "\"'-2+3,\"\"x\"\"\"");
    check_csv("\t=1", "\"'\t=1\"");
    check_csv("\r=1", "\"'\r=1\"");
    check_csv("-inf", "\"'-inf\"");
    check_csv("a=1", "a=1");
    check_csv("-1", "-1"); /* numbers stay numbers */
    check_csv("+1.5e3", "+1.5e3");
    check_csv("-0.25", "-0.25");
}

static void check_fold(const char *const *names, size_t n, const char *folded)
{
    OWNED(free) char *made = ctl_join_names(names, n, NULL);

    assert_non_null(made);
    assert_string_equal(made, folded);
}

#define FOLD(folded, ...)                                                                                    \
    do {                                                                                                     \
        static const char *const names_[] = {__VA_ARGS__};                                                   \
        check_fold(names_, sizeof names_ / sizeof names_[0], folded);                                        \
    } while (0)

TEST(test_fold)
{
    check_fold(NULL, 0, "");
    FOLD("login", "login");
    FOLD("node7", "node7");
    FOLD("node[1-3]", "node1", "node2", "node3");
    FOLD("node[1-2,4]", "node1", "node2", "node4");
    FOLD("node[8-11]", "node8", "node9", "node10", "node11");
    FOLD("node[08-11]", "node08", "node09", "node10", "node11");
    FOLD("node[9,010]", "node9", "node010"); /* other widths are other names */
    FOLD("node[1-2],login,rack[3,5]", "node1", "node2", "login", "rack3", "rack5");
    FOLD("a,b,c", "a", "b", "c");
    FOLD("[1-2]", "1", "2");
    FOLD("x9999999999,x10000000000", "x9999999999", "x10000000000"); /* too long to be a counter */
    FOLD("0x0000000000100000,0x0000000000100002", "0x0000000000100000", "0x0000000000100002");
}

TEST(test_time)
{
    char buf[CTL_TIME_SIZE];

    assert_string_equal(ctl_time(0, buf), "1970-01-01T00:00:00.000000Z");
    assert_string_equal(ctl_time(1700000000123456, buf), "2023-11-14T22:13:20.123456Z");
    assert_string_equal(ctl_time(-1, buf), "1969-12-31T23:59:59.999999Z");
    assert_non_null(ctl_time(INT64_MAX, buf));
    assert_non_null(ctl_time(INT64_MIN, buf));
}

TEST(test_mentions)
{
    assert_true(ctl_mentions("leaf1[8] - node001 HCA-1[1]", "node001"));
    assert_true(ctl_mentions("node001", "node001"));
    assert_true(ctl_mentions("node0010 node001", "node001"));
    assert_false(ctl_mentions("leaf1[8] - node0010 HCA-1[1]", "node001"));
    assert_false(ctl_mentions("xnode001", "node001"));
    assert_false(ctl_mentions("node001.cluster", "node001"));
    assert_false(ctl_mentions("node001", ""));
    assert_false(ctl_mentions("", "node001"));
}
