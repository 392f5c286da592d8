/* test_facts_page.c - the man page fabricctl(1) lists every kind of fact, and whom one believes about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "topo/join.h"

static char page[1 << 17];

static int read_page(void **state)
{
    FILE *in = fopen(TEST_DATA "/../../docs/fabricctl.1", "rb");
    (void)state;
    assert_non_null(in);
    size_t n = fread(page, 1, sizeof(page) - 1, in);
    fclose(in);
    page[n] = '\0';
    return n > 0 ? 0 : -1;
}

static void every_kind_is_described(void **state)
{
    (void)state;
    for (unsigned kind = 1; kind < FAB_FACTS; kind++) {
        char item[64];
        snprintf(item, sizeof(item), "\n.It Cm %s\n", fab_fact_name((enum fab_fact)kind));
        if (strstr(page, item) == NULL)
            fail_msg("fabricctl.1 has no `.It Cm %s`", fab_fact_name((enum fab_fact)kind));
    }
}

/* Kinds with one order, and that order, as the page has them. */
static void print_order(const enum fab_source *order, FILE *out)
{
    const char *between = "\n.It Cm";
    for (unsigned kind = 1; kind < FAB_FACTS; kind++)
        if (fab_join_order((enum fab_fact)kind) == order) {
            fprintf(out, "%s %s", between, fab_fact_name((enum fab_fact)kind));
            between = " ,";
        }
    between = "\n";
    for (; *order != FAB_SOURCES; order++) {
        fprintf(out, "%s%s", between, fab_source_name(*order));
        between = ", ";
    }
    fprintf(out, "\n");
}

static void every_order_is_the_table_s(void **state)
{
    (void)state;
    for (unsigned kind = 1; kind < FAB_FACTS; kind++) {
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        print_order(fab_join_order((enum fab_fact)kind), out);
        fclose(out);
        if (strstr(page, text) == NULL)
            fail_msg("not in fabricctl.1:%s", text);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_described),
        cmocka_unit_test(every_order_is_the_table_s),
    };
    return cmocka_run_group_tests(tests, read_page, NULL);
}
