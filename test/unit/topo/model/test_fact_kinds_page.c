/* The man page fabricctl(1) lists every kind of fact, and whom one believes about it. */

#include "test/unit/test.h"
#include "topo/join/join.h"

static char page[1 << 17];

FIXTURE(read_page)
{
    FILE *in = fopen(TEST_DATA "/../../docs/fabricctl.1", "rb");
    assert_non_null(in);
    size_t n = fread(page, 1, sizeof(page) - 1, in);
    fclose(in);
    page[n] = '\0';
    return n > 0 ? 0 : -1;
}

TEST(every_kind_is_described)
{
    for (unsigned kind = 1; kind < FAB_FACTS; kind++) {
        const char *item = printed("\n.It Cm %s\n", fab_fact_name((enum fab_fact)kind));
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

TEST(every_order_is_the_table_s)
{
    for (unsigned kind = 1; kind < FAB_FACTS; kind++) {
        OWNED(free) char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        print_order(fab_join_order((enum fab_fact)kind), out);
        fclose(out);
        if (strstr(page, text) == NULL)
            fail_msg("not in fabricctl.1:%s", text);
    }
}

TEST_GROUP(read_page, NULL)
