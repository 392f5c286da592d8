/* What NVIDIA's topograph calls a model, and the JSON of its engine `graph`. */
#include "test/unit/import_files.h"

#define TREE                                                                                                 \
    "leaf1 > core[1]\nleaf2 > core[2]\nn1 HCA-1 > leaf1[1]\nn2 HCA-1 > leaf1[2]\nn3 HCA-1 > leaf2[3]\n"

TEST(test_model)
{
    import_gives(topograph_parse,
                 "# model\n"
                 "switches:\n"
                 "  core:\n"
                 "    labels: {topology.kubernetes.io/region: r1}\n"
                 "    switches: [leaf1, leaf2]\n"
                 "  leaf1:\n"
                 "blocks:\n"
                 "- switch: leaf1\n"
                 "  nodes: [\"n[1-2]\"]\n"
                 "  annotations: {accelerator.topology.test/domain: nvl1}\n"
                 "- nodes: [apart]\n"
                 "- switch: leaf2\n"
                 "  nodes: [n3]\n",
                 TREE);
    /* as topograph before 0.5 had them */
    import_gives(
        topograph_parse,
        "switches: {core: {switches: [leaf1, leaf2]}, leaf1: {nodes: [n1, n2]}, leaf2: {nodes: [n3]}}\n",
        TREE);
}

TEST(test_graph)
{
    import_gives(
        topograph_parse,
        "{\"instances\":[{\"id\":\"n1\",\"network_layers\":[\"leaf1\",\"core\"],\"labels\":{\"a\":\"b\"}},\n"
        "\t{\"id\":\"n2\",\"type\":\"H100\",\"network_layers\":[\"leaf1\",\"core\"]},\n"
        "\t{\"id\":\"n3\",\"network_layers\":[\"leaf2\",\"core\"]},\n"
        "\t{\"id\":\"x\"},{\"id\":\"y\",\"network_layers\":[]},{\"id\":\"z\",\"network_layers\":null}]}\n",
        TREE);
}

TEST(test_refused)
{
    static const struct {
        const char *text;
        int code;
        const char *message;
    } cases[] = {
        {"", PMIXFAB_ERR_TRUNCATED, "f.txt:1:1: the file is empty"},
        {"{}", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: expected `switches` and `blocks`"},
        {"SwitchName=a", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: expected `switches` and `blocks`"},
        {"{\"instances\": [", PMIXFAB_ERR_SYNTAX, "f.txt:2:1: not valid YAML: "},
        {"{\"instances\": []}", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: no switch"},
        {"{\"instances\": [{\"id\": \"x\"}]}", PMIXFAB_ERR_SYNTAX, "f.txt:1:1: no switch"},
        {"instances: [{network_layers: [a]}]", PMIXFAB_ERR_SYNTAX, "f.txt:1:13: an instance without an `id`"},
        {"instances: [{id: [a]}]", PMIXFAB_ERR_SYNTAX, "f.txt:1:18: an instance's id should be a text"},
        {"instances: [{id: a, network_layers: [l]}, {id: a, network_layers: [l]}]", PMIXFAB_ERR_CONFLICT,
         "f.txt:1:48: a second instance"},
        {"instances: [{id: a, network_layers: [l, c]}, {id: b, network_layers: [l, d]}]",
         PMIXFAB_ERR_CONFLICT, "f.txt:1:74: switch \"l\" is below \"d\" here and below \"c\" elsewhere"},
        {"instances: [{id: a, network_layers: [l, l]}]", PMIXFAB_ERR_CONFLICT,
         "f.txt:1:41: switch \"l\" is cabled"},
        {"instances: [{id: a b, network_layers: [l]}]", PMIXFAB_ERR_SYNTAX,
         "f.txt:1:18: \"a b\" is not a host"},
        {"instances: [{id: a, network_layers: [[l]]}]", PMIXFAB_ERR_SYNTAX,
         "f.txt:1:38: a switch's name should"},
        {"switches: [a]", PMIXFAB_ERR_SYNTAX, "f.txt:1:11: `switches` should have a name and a colon"},
        {"switches: {a: {switches: [b]}, c: {switches: [b]}}", PMIXFAB_ERR_CONFLICT,
         "f.txt:1:47: switch \"b\""},
        {"switches: {a: {}}\nblocks:\n- switch: b\n  nodes: [n1]\n", PMIXFAB_ERR_NOTFOUND,
         "f.txt:3:11: there is no switch of this name"},
        {"switches: {a: {}}\nblocks: [{switch: a}]", PMIXFAB_ERR_SYNTAX,
         "f.txt:2:10: a block without `nodes`"},
        {"switches: {a: {}}\nblocks: [{switch: a, nodes: [\"n[1\"]}]", PMIXFAB_ERR_SYNTAX,
         "f.txt:2:30: not a list of hosts"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        import_refuses(topograph_parse, cases[i].text, cases[i].code, cases[i].message);
}
