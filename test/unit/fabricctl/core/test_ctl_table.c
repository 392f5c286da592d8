/* Rows in three forms. */

#include "fabricctl/core/ctl.h"
#include "fabricctl/export/export.h"
#include "test/unit/test.h"

static const struct ctl_column columns[] = {
    {"index", "INDEX", true},    {"name", "NAME", false}, {"guid", NULL, false},
    {"rate_gbps", "RATE", true}, {"up", "UP", false},     {"logical", "AT", false},
    {"hosts", "HOSTS", false},   {"time", NULL, false},
};

#define N_COLUMNS (sizeof columns / sizeof columns[0])

/* What a test writes into. */
struct page {
    FILE *out;
    char *text;
    size_t size;
};

static struct ctl_table *begin(struct page *page, enum ctl_format format, enum ctl_json json)
{
    page->out = open_memstream(&page->text, &page->size);
    assert_non_null(page->out);
    return ctl_table_open(page->out, format, json, NULL, columns, N_COLUMNS);
}

static const char *end(struct page *page, struct ctl_table *table)
{
    assert_int_equal(ctl_table_close(table), CTL_DONE);
    fclose(page->out);
    return page->text;
}

static void put_rows(struct ctl_table *table)
{
    static const uint32_t at[] = {0, 4294967295u, 7};
    static const char *const hosts[] = {"node1", "node2", "login"};

    ctl_put_number(table, 0);
    ctl_put_text(table, "leaf \"1\", upper\x1b");
    ctl_put_guid(table, 0x10abc);
    ctl_put_rate(table, 56250);
    ctl_put_bool(table, true);
    ctl_put_numbers(table, at, 3);
    ctl_put_hosts(table, hosts, 3);
    ctl_put_time(table, 1700000000123456);
    assert_true(ctl_table_row(table));
    ctl_put_number(table, -12);
    ctl_put_text(table, NULL);
    ctl_put_guid(table, 0);
    ctl_put_rate(table, 0);
    ctl_put_bool(table, false);
    ctl_put_numbers(table, NULL, 0);
    assert_true(ctl_table_row(table)); /* what is missing is null */
}

static void check_first(json_t *row)
{
    assert_int_equal(json_integer_value(json_object_get(row, "index")), 0);
    assert_string_equal(json_string_value(json_object_get(row, "name")), "leaf \"1\", upper?");
    assert_string_equal(json_string_value(json_object_get(row, "guid")), "0x0000000000010abc");
    assert_float_equal(json_number_value(json_object_get(row, "rate_gbps")), 56.25, 1e-9);
    assert_true(json_is_true(json_object_get(row, "up")));
    assert_int_equal(json_integer_value(json_array_get(json_object_get(row, "logical"), 1)), 4294967295);
    assert_int_equal(json_array_size(json_object_get(row, "hosts")), 3);
    assert_string_equal(json_string_value(json_object_get(row, "time")), "2023-11-14T22:13:20.123456Z");
}

TEST(test_json)
{
    struct page page = {0};
    struct ctl_table *table = begin(&page, CTL_JSON, CTL_JSON_ARRAY);
    json_t *value, *second;

    put_rows(table);
    value = json_loads(end(&page, table), 0, NULL);
    assert_int_equal(json_array_size(value), 2);
    check_first(json_array_get(value, 0));
    second = json_array_get(value, 1);
    assert_int_equal(json_object_size(second), N_COLUMNS);
    assert_int_equal(json_integer_value(json_object_get(second, "index")), -12);
    assert_true(json_is_null(json_object_get(second, "name")));
    assert_true(json_is_null(json_object_get(second, "guid")));
    assert_true(json_is_null(json_object_get(second, "rate_gbps")));
    assert_true(json_is_false(json_object_get(second, "up")));
    assert_int_equal(json_array_size(json_object_get(second, "logical")), 0);
    assert_true(json_is_null(json_object_get(second, "hosts")));
    json_decref(value);
    free(page.text);
}

TEST(test_json_lines)
{
    struct page page = {0};
    struct ctl_table *table = begin(&page, CTL_JSON, CTL_JSON_LINES);
    json_t *value;
    char *second;

    put_rows(table);
    assert_int_equal(strlen(page.text), page.size); /* flushed before it is closed */
    end(&page, table);
    second = strchr(page.text, '\n');
    *second++ = '\0';
    value = json_loads(page.text, 0, NULL);
    check_first(value);
    json_decref(value);
    second[strlen(second) - 1] = '\0';
    assert_null(strchr(second, '\n'));
    value = json_loads(second, 0, NULL);
    assert_true(json_is_object(value));
    json_decref(value);
    free(page.text);
}

TEST(test_csv)
{
    struct page page = {0};
    struct ctl_table *table = begin(&page, CTL_CSV, CTL_JSON_ARRAY);

    put_rows(table);
    assert_string_equal(
        end(&page, table),
        "index,name,guid,rate_gbps,up,logical,hosts,time\n"
        "0,\"leaf \"\"1\"\", upper?\",0x0000000000010abc,56.25,true,0;4294967295;7,node1;node2;login,"
        "2023-11-14T22:13:20.123456Z\n"
        "-12,,,,false,,,\n");
    free(page.text);
}

TEST(test_text)
{
    struct page page = {0};
    struct ctl_table *table = begin(&page, CTL_TEXT, CTL_JSON_ARRAY);

    put_rows(table);
    assert_string_equal(end(&page, table),
                        "INDEX NAME              RATE UP  AT             HOSTS\n"
                        "    0 leaf \"1\", upper? 56.25 yes 0,4294967295,7 node[1-2],login\n"
                        "  -12 -                    - no  -              -\n");
    free(page.text);
}

static void check_empty(enum ctl_format format, enum ctl_json json, const char *expected)
{
    struct page page = {0};
    struct ctl_table *table = begin(&page, format, json);

    assert_string_equal(end(&page, table), expected);
    free(page.text);
}

TEST(test_empty)
{
    check_empty(CTL_JSON, CTL_JSON_ARRAY, "[]\n");
    check_empty(CTL_JSON, CTL_JSON_LINES, "");
    check_empty(CTL_CSV, CTL_JSON_ARRAY, "index,name,guid,rate_gbps,up,logical,hosts,time\n");
    check_empty(CTL_TEXT, CTL_JSON_ARRAY, "");
}

/* More cells than columns are dropped, and a table that is not there takes everything. */
TEST(test_misuse)
{
    struct page page = {0};
    struct ctl_table *table = begin(&page, CTL_CSV, CTL_JSON_ARRAY);

    for (size_t i = 0; i < N_COLUMNS + 5; i++)
        ctl_put_number(table, (int64_t)i);
    assert_true(ctl_table_row(table));
    assert_string_equal(strchr(end(&page, table), '\n'), "\n0,1,2,3,4,5,6,7\n");
    free(page.text);
    ctl_put_number(NULL, 1);
    ctl_put_text(NULL, "x");
    ctl_put_hosts(NULL, NULL, 0);
    assert_false(ctl_table_row(NULL));
}

TEST(test_full_disk)
{
    FILE *full = fopen("/dev/full", "w");
    struct ctl_table *table;

    if (full == NULL)
        skip();
    table = ctl_table_open(full, CTL_JSON, CTL_JSON_LINES, NULL, columns, N_COLUMNS);
    ctl_put_number(table, 1);
    assert_false(ctl_table_row(table));
    ctl_table_close(table);
    fclose(full);
}

TEST(test_rates)
{
    json_t *whole = ctl_json_rate(400000), *part = ctl_json_rate(54545);
    OWNED(free) char *text = json_dumps(part, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));

    assert_true(json_is_integer(whole));
    assert_int_equal(json_integer_value(whole), 400);
    assert_string_equal(text, "54.545");
    json_decref(whole);
    json_decref(part);
}

static void check_header(uint32_t n, const char *shape)
{
    unsigned char header[CTL_NPY_HEADER_MAX];
    char dict[CTL_NPY_HEADER_MAX];
    size_t len = ctl_npy_header(n, header), dict_len;

    assert_true(len <= sizeof header);
    assert_int_equal(len % 64, 0);
    assert_memory_equal(header, "\x93NUMPY\x01\x00", 8);
    dict_len = header[8] | (size_t)header[9] << 8;
    assert_int_equal(dict_len + 10, len);
    assert_int_equal(header[len - 1], '\n');
    memcpy(dict, header + 10, dict_len);
    dict[dict_len] = '\0';
    assert_non_null(strstr(dict, "'descr': '<u2'"));
    assert_non_null(strstr(dict, "'fortran_order': False"));
    assert_non_null(strstr(dict, shape));
}

TEST(test_npy_header)
{
    check_header(0, "'shape': (0, 0)");
    check_header(64, "'shape': (64, 64)");
    check_header(9826, "'shape': (9826, 9826)");
    check_header(UINT32_MAX, "'shape': (4294967295, 4294967295)");
}
