/* Ports whose counters are looked at: what is growth, and what is not. */
#include "fabricd/sources/port_counters.h"
#include "test/unit/test.h"

static void told(struct counter_watch *watch, uint64_t guid, uint32_t num, enum probe_counter counter,
                 uint64_t value, int64_t now)
{
    struct probe_reading reading = {.guid = guid, .num = num, .state = READING_GOOD};
    reading.value[counter] = value;
    counter_watch_read(watch, &reading, now);
}

static void assert_growth(const struct counter_watch *watch, uint64_t guid, uint32_t num, const char *text)
{
    char is[COUNTERS_TEXT];
    const struct watched_port *port = counter_watch_find(watch, guid, num);
    assert_non_null(port);
    counter_growth_text(port, is);
    assert_string_equal(is, text);
    assert_int_equal(port->grows_since != 0, text[0] != '\0');
}

TEST(what_grows_between_two_readings)
{
    struct counter_watch watch = {0};
    assert_int_equal(counter_watch_add(&watch, 7, 3, true, 10), PMIXFAB_OK);
    told(&watch, 7, 3, COUNTER_SYMBOL_ERRORS, 500, 20); /* of before */
    assert_growth(&watch, 7, 3, "");
    told(&watch, 7, 3, COUNTER_SYMBOL_ERRORS, 550, 30);
    assert_growth(&watch, 7, 3, "symbol errors +50");
    assert_int_equal(counter_watch_find(&watch, 7, 3)->grows_since, 20);
    told(&watch, 7, 3, COUNTER_SYMBOL_ERRORS, 551, 40);
    assert_growth(&watch, 7, 3, "symbol errors +51");
    assert_int_equal(counter_watch_add(&watch, 7, 3, false, 50), PMIXFAB_OK); /* asked for */
    assert_growth(&watch, 7, 3, "symbol errors +51");
    assert_int_equal(counter_watch_add(&watch, 7, 3, true, 60), PMIXFAB_OK); /* another cable */
    assert_growth(&watch, 7, 3, "");
    told(&watch, 7, 3, COUNTER_SYMBOL_ERRORS, 900, 70);
    assert_growth(&watch, 7, 3, "");
    counter_watch_free(&watch);
}

TEST(what_is_no_growth)
{
    struct counter_watch watch = {0};
    const struct probe_reading silent = {.guid = 1, .num = 1, .state = READING_SILENT};
    counter_watch_add(&watch, 1, 1, true, 1);
    told(&watch, 1, 1, COUNTER_LINK_DOWNED, 255, 2);
    told(&watch, 1, 1, COUNTER_LINK_DOWNED, 255, 3); /* at its end */
    assert_growth(&watch, 1, 1, "");
    told(&watch, 1, 1, COUNTER_LINK_DOWNED, 3, 4); /* set to zero */
    assert_growth(&watch, 1, 1, "");
    counter_watch_read(&watch, &silent, 5);
    assert_int_equal(counter_watch_find(&watch, 1, 1)->last.state, READING_SILENT);
    told(&watch, 1, 1, COUNTER_LINK_DOWNED, 3, 6);
    assert_growth(&watch, 1, 1, "");
    told(&watch, 1, 1, COUNTER_LINK_DOWNED, 255, 7);
    assert_growth(&watch, 1, 1, "link downed +252 and at its end");
    told(&watch, 1, 1, COUNTER_SENT_PACKETS, 1000, 8); /* that is what it is for; the other was reset */
    assert_growth(&watch, 1, 1, "link downed +252");
    told(&watch, 2, 1, COUNTER_LINK_DOWNED, 255, 9); /* nobody looks at it */
    assert_null(counter_watch_find(&watch, 2, 1));
    counter_watch_free(&watch);
}

TEST(the_time_of_a_port)
{
    struct counter_watch watch = {0};
    counter_watch_add(&watch, 1, 1, true, 0);
    counter_watch_add(&watch, 1, 2, true, 0);
    told(&watch, 1, 2, COUNTER_RECEIVE_ERRORS, 0, 1);
    told(&watch, 1, 2, COUNTER_RECEIVE_ERRORS, 1, 100);
    counter_watch_expire(&watch, COUNTER_WATCH_TIME);
    assert_null(counter_watch_find(&watch, 1, 1));
    assert_growth(&watch, 1, 2, "receive errors +1");
    counter_watch_expire(&watch, COUNTER_WATCH_TIME + 100);
    assert_int_equal(watch.n, 0);
    for (uint32_t i = 0; i < COUNTERS_MAX; i++)
        assert_int_equal(counter_watch_add(&watch, i * 7919 % COUNTERS_MAX + 1, 1, true, 0), PMIXFAB_OK);
    assert_int_equal(counter_watch_add(&watch, 1, 2, true, 0), PMIXFAB_ERR_RANGE);
    for (uint32_t i = 1; i < watch.n; i++)
        assert_true(watch.ports[i - 1].last.guid < watch.ports[i].last.guid);
    counter_watch_free(&watch);
}

TEST(an_order_and_what_is_none)
{
    const struct probe_reading list[] = {{.guid = 1, .num = 2}, {.guid = 3, .num = 4}};
    struct probe_reading *got;
    const void *parts;
    size_t size, parts_size;
    uint32_t n;
    void *bytes;
    struct fab_err err;
    assert_int_equal(counters_order_encode(list, 2, "seen", 4, &bytes, &size), PMIXFAB_OK);
    assert_int_equal(counters_order_decode(bytes, size, &got, &n, &parts, &parts_size, &err), PMIXFAB_OK);
    assert_int_equal(n, 2);
    assert_memory_equal(got, list, sizeof(list));
    assert_int_equal(parts_size, 4);
    assert_memory_equal(parts, "seen", 4);
    free(got);
    for (size_t less = 0; less < size; less++) {
        assert_int_equal(counters_order_decode(bytes, less, &got, &n, &parts, &parts_size, &err),
                         PMIXFAB_ERR_CORRUPT);
        free(got);
    }
    free(bytes);
}
