/* Lists of hosts: what is folded comes back, and what is no list is refused with the place. */
#include "test/unit/test.h"
#include "topo/base/hostlist.h"

static void check_names(const char *text, const char *spelled)
{
    struct fab_hostlist list;
    struct fab_err err = {{0}};
    char joined[1024] = "";

    if (fab_hostlist_parse(text, &list, &err) != 0)
        fail_msg("%s: %s", text, err.text);
    for (uint32_t i = 0; i < list.n; i++) {
        strcat(joined, i > 0 ? " " : "");
        strcat(joined, list.names[i]);
    }
    assert_string_equal(joined, spelled);
    fab_hostlist_free(&list);
}

/* As `scontrol show hostnames` of Slurm 22.05 has them. */
TEST(lists_are_spelled_out)
{
    check_names("", "");
    check_names("a", "a");
    check_names("a,b c\n\td,,e, ", "a b c d e");
    check_names("n[1-3,7],x", "n1 n2 n3 n7 x");
    check_names("n[08-11]", "n08 n09 n10 n11");
    check_names("n[8,09-10,011]", "n8 n09 n10 n011");
    check_names("n[99999-100000]", "n99999 n100000");
    check_names("r[1-2]n[01-02]", "r1n01 r1n02 r2n01 r2n02");
    check_names("a[1-2]b[3]c[4-5].d", "a1b3c4.d a1b3c5.d a2b3c4.d a2b3c5.d");
    check_names("[1-3]", "1 2 3");
    check_names("n[01-3]", "n01 n02 n03");
    check_names("n2,n1,n1", "n2 n1 n1");
    check_names("n[123456789012345678]", "n123456789012345678");
}

TEST(other_texts_are_refused_with_the_place)
{
    static const struct {
        const char *text, *says;
    } bad[] = {{"a[1", "character 2: a bracket is not closed"},
               {"abc,n[1-2,", "character 6: a bracket is not closed"},
               {"a]", "character 2: a closing bracket without an opening one"},
               {"a[1]]", "character 5: a closing bracket"},
               {"a[]", "character 2: the brackets are empty"},
               {"a[1-]", "character 5: a number is expected here"},
               {"a[,1]", "character 3: a number"},
               {"a[1,]", "character 5: a number"},
               {"a[1--2]", "character 5: a number"},
               {"a[1-2-3]", "character 6: only numbers"},
               {"a[b]", "character 3: a number"},
               {"a[[1]]", "character 3: a number"},
               {"b,a[3-1]", "character 5: the range ends before it begins"},
               {"a[1 - 2]", "character 4: only numbers"},
               {"a[1234567890123456789]", "character 3: the number is too long"},
               {"a[1-1000001]", "more than 1000000 names"},
               {"a[1-999999999999999999]", "more than 1000000 names"},
               {"a[1]b[1]c[1]d[1]e[1]f[1]g[1]h[1]i[1]", "too many brackets"}};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct fab_hostlist list;
        struct fab_err err = {{0}};

        assert_int_not_equal(fab_hostlist_parse(bad[i].text, &list, &err), 0);
        if (strstr(err.text, bad[i].says) == NULL)
            fail_msg("%s: %s", bad[i].text, err.text);
        assert_null(list.names);
        assert_int_equal(list.n, 0);
    }
}

TEST(a_name_that_is_too_long_is_refused)
{
    struct fab_hostlist list;
    char text[300];

    memset(text, 'x', sizeof(text));
    text[256] = '\0';
    assert_int_equal(fab_hostlist_parse(text, &list, NULL), PMIXFAB_ERR_SYNTAX);
    text[255] = '\0';
    assert_int_equal(fab_hostlist_parse(text, &list, NULL), 0);
    fab_hostlist_free(&list);
    strcpy(text + 253, "[100-101]");
    assert_int_equal(fab_hostlist_parse(text, &list, NULL), PMIXFAB_ERR_SYNTAX);
    strcpy(text + 252, "[100-101]");
    assert_int_equal(fab_hostlist_parse(text, &list, NULL), 0);
    assert_int_equal(list.n, 2);
    fab_hostlist_free(&list);
}

TEST(a_list_has_no_more_names_than_the_caller_takes)
{
    struct fab_hostlist list;
    struct fab_err err = {{0}};

    assert_int_equal(fab_hostlist_parse_most("n[1-3]", 3, &list, &err), 0);
    fab_hostlist_free(&list);
    assert_int_equal(fab_hostlist_parse_most("n[1-2],m[1-999999999]", 3, &list, &err), PMIXFAB_ERR_RANGE);
    assert_non_null(strstr(err.text, "more than 3 names"));
    assert_null(list.names);
}

/* Random numbers with and without zeros before them, several prefixes: thousands of ranges come back. */
TEST(what_is_folded_comes_back)
{
    enum { N = 20000 };
    static char names[N][24];
    static const char *list[N];
    uint64_t seed = 5;

    for (unsigned i = 0; i < N; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        snprintf(names[i], sizeof(names[i]), "%s%0*u", (seed >> 60) % 4 == 0 ? "gpu" : "n0de-",
                 (int)(seed >> 40) % 3 * 4, i * 2 + (unsigned)(seed >> 33) % 2);
        list[i] = names[i];
    }
    for (unsigned n = 0; n <= N; n = n * 3 + 1) {
        OWNED(free) char *folded = fab_hostlist_fold(list, n);
        struct fab_hostlist again;

        assert_non_null(folded);
        assert_int_equal(fab_hostlist_parse(folded, &again, NULL), 0);
        assert_int_equal(again.n, n);
        for (unsigned i = 0; i < n; i++)
            assert_string_equal(again.names[i], list[i]);
        fab_hostlist_free(&again);
    }
}
