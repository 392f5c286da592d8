/* Lines of host,switch,port,speed; and what is made of names: GUIDs, ports, devices. */
#include "test/unit/import_files.h"

TEST(test_lines)
{
    import_gives(nodes_parse,
                 "\xef\xbb\xbfHost,Switch,Port,Speed\r\n"
                 "# a comment\r\n"
                 "\r\n"
                 "n1,leaf1,7,200\r\n"
                 " n2 ,\tleaf1 , , 4xFDR\r\n"
                 "n3,leaf1\n"
                 "leaf1,spine1,,2.5\n"
                 "leaf1,spine1\n"
                 "n3,spine1,9,1",
                 "leaf1 > spine1[1] 1xSDR\n"
                 "leaf1 > spine1[2]\n"
                 "n1 HCA-1 > leaf1[7] 4xHDR\n"
                 "n2 HCA-1 > leaf1[2] 4xFDR\n"
                 "n3 HCA-1 > leaf1[3]\n"
                 "n3 HCA-2 > spine1[9] 1x1GE\n");
}

TEST(test_a_heading_is_the_first_line_only)
{
    import_gives(nodes_parse, "host,switch\nn1,switch\n", "n1 HCA-1 > switch[1]\n");
    import_gives(nodes_parse, "n1,s\nhost,switch\n", "host HCA-1 > switch[1]\nn1 HCA-1 > s[1]\n");
}

/* A name asks for the port of its number, unless that is said of another, or taken before. */
TEST(test_ports)
{
    import_gives(nodes_parse, "a0,s\na3,s\nb3,s\na255,s\nx,s,2\na509,s\nlong123456789012,s\n",
                 "a0 HCA-1 > s[4]\n"
                 "a255 HCA-1 > s[1]\n"
                 "a3 HCA-1 > s[3]\n"
                 "a509 HCA-1 > s[6]\n"
                 "b3 HCA-1 > s[5]\n"
                 "long123456789012 HCA-1 > s[238]\n"
                 "x HCA-1 > s[2]\n");
}

/* What other lines say changes nothing of a node: neither its GUID nor its port. */
TEST(test_names_stay)
{
    SCOPED(fab_inventory) few;
    SCOPED(fab_inventory) many;
    must_do(import_text(nodes_parse, "n7,leaf2\nleaf2,top\n", &few, fresh_err()));
    must_do(
        import_text(nodes_parse, "n1,leaf1\nn6,leaf2\nn7,leaf2\nleaf1,top\nleaf2,top\n", &many, fresh_err()));
    for (uint32_t i = 0; i < few.n_nodes; i++) {
        const uint32_t there = fab_inventory_find(&many, few.nodes[i].guid);
        assert_int_equal(few.nodes[i].guid >> 56, 2);
        assert_int_not_equal(there, FAB_NONE);
        assert_string_equal(fab_str(&few, few.nodes[i].desc), fab_str(&many, many.nodes[there].desc));
        for (uint32_t p = 0; p < few.nodes[i].n_ports; p++) {
            const struct fab_port *port = &few.ports[few.nodes[i].first_port + p];
            assert_int_not_equal(fab_inventory_port(&many, there, port->num), FAB_NONE);
        }
    }
}

TEST(test_refused)
{
    static const struct {
        const char *text;
        int code;
        const char *message;
    } cases[] = {
        {"", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: no line"},
        {"host,switch\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: no line"},
        {"n1\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: a line begins with a host"},
        {"n1,\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: a line begins with a host"},
        {",s\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: a line begins with a host"},
        {"n1,s\nn2,s,0\n", PMIXFAB_ERR_RANGE, "f.txt:2:6: port 0 is not in 1 to 254"},
        {"n1,s,255\n", PMIXFAB_ERR_RANGE, "f.txt:1:6: port 255"},
        {"n1,s,1a\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:7: a port is a number"},
        {"n1,s,,37\n", PMIXFAB_ERR_RANGE, "f.txt:1:7: no link has this speed"},
        {"n1,s,,0\n", PMIXFAB_ERR_RANGE, "f.txt:1:7: no link has this speed"},
        {"n1,s,,1e2\n", PMIXFAB_ERR_RANGE, "f.txt:1:7: no link has this speed"},
        {"n1,s,,1.2.3\n", PMIXFAB_ERR_RANGE, "f.txt:1:7: no link has this speed"},
        {"n1,s,,9999999999999999999\n", PMIXFAB_ERR_RANGE, "f.txt:1:7: no link has this speed"},
        {"n1,s,,3xHDR\n", PMIXFAB_ERR_RANGE, "f.txt:1:7: link width 3x"},
        {"n1,s,,4xBAD\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:9: \"BAD\" is not a link speed"},
        {"n1,s,1,100,\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:8: a line has host"},
        {"n 1,s\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: \"n 1\" is not a host name"},
        {"\"n1\",s\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: \"?n1?\" is not a host name"},
        {"n1,a\"b\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:4: \"a?b\" is not a switch name"},
        {"n1,\xff\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:4: \"?\" is not a switch name"},
        {"n1,s,1\nn2,s,1\n", PMIXFAB_ERR_CONFLICT, "f.txt:2:1: a second cable in port 1 of switch \"s\""},
        {"s,s\n", PMIXFAB_ERR_CONFLICT, "f.txt:1:1: switch \"s\" is cabled to itself"},
        {"Switch 8 \"S-1\"\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: a line begins with a host"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        import_refuses(nodes_parse, cases[i].text, cases[i].code, cases[i].message);
}

TEST(test_long_names_and_full_switches)
{
    char text[8192] = "", *end = text;
    snprintf(text, sizeof(text), "%056d,s%063d\n", 1, 1);
    SCOPED(fab_inventory) inv;
    must_do(import_text(nodes_parse, text, &inv, fresh_err()));
    assert_int_equal(inv.n_nodes, 2);
    snprintf(text, sizeof(text), "%057d,s\n", 1);
    import_refuses(nodes_parse, text, PMIXFAB_ERR_SYNTAX, "f.txt:1:1: \"");
    snprintf(text, sizeof(text), "n1,s%064d\n", 1);
    import_refuses(nodes_parse, text, PMIXFAB_ERR_SYNTAX, "f.txt:1:4: \"");
    for (int i = 1; i <= 254; i++)
        end += sprintf(end, "n%d,s\n", i);
    SCOPED(fab_inventory) full;
    must_do(import_text(nodes_parse, text, &full, fresh_err()));
    assert_int_equal(full.n_nodes, 255);
    strcpy(end, "s,top\n"); /* a port more: switches of ours stand between */
    SCOPED(fab_inventory) split;
    must_do(import_text(nodes_parse, text, &split, fresh_err()));
    assert_int_equal(split.n_nodes, 254 + 4);
    strcpy(end, "n255,s,1\n"); /* who says a port means that switch */
    import_refuses(nodes_parse, text, PMIXFAB_ERR_RANGE, "f.txt:1:1: switch \"s\" has more than 254 cables");
}
