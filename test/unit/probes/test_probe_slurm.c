/* Slurm's topology.conf and topology.yaml as a fabric. */
#include "test/unit/import_files.h"

#define TREE "leaf1 > top[1]\nleaf2 > top[2]\nn1 HCA-1 > leaf1[1]\nn2 HCA-1 > leaf1[2]\nn3 HCA-1 > leaf2[3]\n"

TEST(test_tree)
{
    import_gives(slurm_parse,
                 "# comment\n"
                 "SwitchName=top Switches=leaf[1-2]\n" /* before what is below it */
                 "SwitchName=leaf1 Nodes=n[1-2] LinkSpeed=100 # and a comment\r\n"
                 "\n"
                 "switchname = \"leaf2\" \\\n"
                 "    nodes\t=  n3\\\n"
                 "  \n",
                 TREE);
    import_gives(slurm_parse, "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2",
                 "n1 HCA-1 > a[1]\nn2 HCA-1 > b[2]\n");
    import_gives(slurm_parse, "SwitchName=s Switches=l Nodes=n7\nSwitchName=l Nodes=n1,n7\n",
                 "l > s[1]\nn1 HCA-1 > l[1]\nn7 HCA-1 > s[7]\nn7 HCA-2 > l[7]\n");
}

TEST(test_blocks)
{
    static const char blocks[] = "b1 > blocks[1]\nb2 > blocks[2]\nn1 HCA-1 > b1[1]\nn2 HCA-1 > b2[2]\n";
    import_gives(slurm_parse, "BlockName=b1 Nodes=n1\nBlockName=b2 Nodes=n2\nBlockSizes=1,2\n", blocks);
    import_gives(slurm_parse,
                 "- topology: nv\n  block:\n    block_sizes: [1, 2]\n    blocks:\n"
                 "    - {block: b1, nodes: n1}\n    - {block: b2, nodes: n2}\n",
                 blocks);
}

TEST(test_yaml)
{
    import_gives(slurm_parse,
                 "# comment\n---\n"
                 "- topology: fast\n"
                 "  cluster_default: true\n"
                 "  tree:\n"
                 "    switches:\n"
                 "      - switch: top\n"
                 "        children: leaf[1-2]\n"
                 "      - switch: leaf1\n"
                 "        nodes: n[1-2]\n"
                 "      - switch: leaf2\n"
                 "        nodes: n3\n"
                 "- topology: none\n"
                 "  flat: true\n",
                 TREE);
}

/* Clouds have one switch for all hosts. Ours stand between then, and a host more moves none of the others. */
TEST(test_more_than_a_switch_has_ports)
{
    SCOPED(fab_inventory) full;
    must_do(import_text(slurm_parse, "SwitchName=all Nodes=n[1-254]\n", &full, fresh_err()));
    assert_int_equal(full.n_nodes, 255);
    SCOPED(fab_inventory) inv;
    must_do(import_text(slurm_parse, "SwitchName=all Nodes=n[1-600],x\nSwitchName=all-2 Nodes=n1\n", &inv,
                        fresh_err()));
    static const struct {
        const char *name;
        uint32_t cables;
    } expected[] = {{"all", 3}, {"all-1", 254}, {"all-2", 1}, {"all-3", 254}, {"all-4", 96}};
    unsigned n_found = 0;
    for (uint32_t i = 0; i < inv.n_nodes; i++)
        for (size_t k = 0; k < sizeof(expected) / sizeof(expected[0]); k++)
            n_found += inv.nodes[i].kind == FAB_SWITCH && inv.nodes[i].n_ports == expected[k].cables &&
                       strcmp(fab_str(&inv, inv.nodes[i].desc), expected[k].name) == 0;
    assert_int_equal(n_found, 5);
    assert_int_equal(inv.n_nodes, 5 + 601 + 1);
    SCOPED(fab_inventory) most;
    must_do(import_text(slurm_parse, "SwitchName=all Nodes=n[1-64262]\n", &most, fresh_err()));
    assert_int_equal(most.n_nodes, 1 + 254 + 64262);
}

/* Topologies are planes of their own: what has equal names is not the same, but for hosts. */
TEST(test_several_topologies)
{
    SCOPED(fab_inventory) inv;
    must_do(import_text(slurm_parse,
                        "[{topology: a, tree: {switches: [{switch: s, nodes: 'n[1-2]'}]}},\n"
                        " {topology: b, tree: {switches: [{switch: s, nodes: 'n[1-3]'}]}}]",
                        &inv, fresh_err()));
    unsigned n_switches = 0;
    for (uint32_t i = 0; i < inv.n_nodes; i++) {
        const struct fab_node *node = &inv.nodes[i];
        const bool second = (node->guid >> 48 & 0xff) == 1;
        if (node->kind == FAB_SWITCH)
            assert_int_equal(node->n_ports, n_switches++ == 0 ? 2 : 3);
        else
            assert_string_equal(fab_str(&inv, node->name),
                                second && strcmp(fab_str(&inv, node->host), "n3") != 0 ? "HCA-2" : "HCA-1");
    }
    assert_int_equal(inv.n_nodes, 7);
    assert_int_equal(n_switches, 2);
}

TEST(test_refused)
{
    static const struct {
        const char *text;
        int code;
        const char *message;
    } cases[] = {
        {"", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: no switch or block"},
        {"BlockSizes=4\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: no switch or block"},
        {"SwitchName=a\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: the file puts nothing below a switch"},
        {"NodeName=n1\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: this word of a topology.conf"},
        {"SwitchName=a Nodes=n1 Speed=1\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:23: this word"},
        {"Nodes=n1\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: the line needs a SwitchName or a BlockName"},
        {"SwitchName=a BlockName=a\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: the line needs a SwitchName or"},
        {"SwitchName=a SwitchName=b\n", PMIXFAB_ERR_CONFLICT, "f.txt:1:14: the same word twice"},
        {"SwitchName= Nodes=n1\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:13: a value is missing"},
        {"SwitchName=\"a Nodes=n1\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:12: this quote is not closed"},
        {"SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", PMIXFAB_ERR_CONFLICT,
         "f.txt:2:12: a second \"a\""},
        {"SwitchName=a Switches=b\n", PMIXFAB_ERR_NOTFOUND, "f.txt:1:23: switch \"b\" is below \"a\""},
        {"SwitchName=a Switches=a\n", PMIXFAB_ERR_CONFLICT, "f.txt:1:23: switch \"a\" is cabled to itself"},
        {"SwitchName=a Nodes=n[1-2\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:20: not a list of hosts: character 2"},
        {"SwitchName=a Nodes=n[1-9999999]\n", PMIXFAB_ERR_RANGE,
         "f.txt:1:20: not a list of hosts: more than"},
        {"SwitchName=a \\\n Nodes=n1,n1\n", PMIXFAB_ERR_CONFLICT, "f.txt:2:8: \"n1\" is twice"},
        {"SwitchName=a Nodes=n@1\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:20: \"n@1\" is not a host name"},
        {"SwitchName=a =n1\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:14: this word"},
        {"SwitchName =\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:13: a value is missing"},
        {"SwitchName=a Nodes=n[1-64263]\n", PMIXFAB_ERR_RANGE,
         "f.txt:1:20: not a list of hosts: more than 64262 names"},
        {"- topology: a\n  tree: [\n", PMIXFAB_ERR_SYNTAX, "f.txt:3:1: not valid YAML: "},
        {"- tree: {switches: []}\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:3: expected `topology:`"},
        {"- topology: a\n  tree:\n    switches:\n    - nodes: n1\n", PMIXFAB_ERR_SYNTAX,
         "f.txt:4:7: expected `switch:`"},
        {"- {topology: a, block: {blocks: [{switch: s}]}}\n", PMIXFAB_ERR_SYNTAX,
         "f.txt:1:34: expected `block:`"},
        {"- {topology: a, tree: {switches: [{switch: [s]}]}}\n", PMIXFAB_ERR_SYNTAX,
         "f.txt:1:44: a name should"},
        {"- {topology: a, tree: {switches: [{switch: s, nodes: [n1]}]}}\n", PMIXFAB_ERR_SYNTAX,
         "f.txt:1:54: a list of hosts or switches should be a text"},
        {"- {topology: a, tree: {switches: [{switch: s, nodes: \"n\\01\"}]}}\n", PMIXFAB_ERR_SYNTAX,
         "f.txt:1:54: a list of hosts or switches contains a 0 byte"},
        {"- {topology: a, flat: true}\n", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: no switch or block"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        import_refuses(slurm_parse, cases[i].text, cases[i].code, cases[i].message);
}
