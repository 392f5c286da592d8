/* mkfabric - print a generated fabric: as an ibsim netfile, as ibnetdiscover's text, or what it consists of.
 */
#include <string.h>

#include "test/fabrics/fabrics.h"

/* One line of shell assignments. */
static int print_info(const struct fab_inventory *inv)
{
    unsigned kinds[5] = {0}, cables = 0, hosts = 0;
    char limits[96], name[256];
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        kinds[node->kind]++;
        hosts += node->kind == FAB_HCA && strcmp(fab_str(inv, node->name), "HCA-1") == 0;
    }
    for (uint32_t i = 0; i < inv->n_ports; i++)
        cables += inv->ports[i].peer < i; /* FAB_NONE is above all */
    fabric_ibsim_limits(inv, limits, sizeof(limits));
    printf("hosts=%u hcas=%u switches=%u cables=%u first=%s ibsim=\"%s\"\n", hosts, kinds[FAB_HCA],
           kinds[FAB_SWITCH], cables, inv->n_nodes > 0 ? fabric_node_name(inv, 0, name, sizeof(name)) : "",
           limits);
    return PMIXFAB_OK;
}

int main(int argc, char **argv)
{
    struct fab_inventory inv;
    if (argc != 3) {
        fprintf(stderr, "usage: mkfabric KIND:ARGS net|capture|info\n"
                        "  KIND:ARGS  fattree2:LEAVES,SPINES,HOSTS[,CABLES] fattree3:K dragonfly:P,A,H "
                        "torus:X,Y[,Z]:HOSTS\n"
                        "             mesh:X,Y[,Z]:HOSTS random:SWITCHES,HOSTS,EXTRA:SEED\n"
                        "             rails:UNITS,RAILS,HOSTS,SPINES[:SEED]\n");
        return 2;
    }
    int rc = fabric_parse(argv[1], &inv);
    if (rc != PMIXFAB_OK) {
        fprintf(stderr, "mkfabric: %s: not a fabric that can be generated (%d)\n", argv[1], rc);
        return rc == PMIXFAB_ERR_SYNTAX ? 2 : 1;
    }
    if (strcmp(argv[2], "net") == 0)
        rc = fabric_write_netfile(&inv, stdout);
    else if (strcmp(argv[2], "capture") == 0)
        rc = fabric_write_capture(&inv, stdout);
    else if (strcmp(argv[2], "info") == 0)
        rc = print_info(&inv);
    else
        rc = PMIXFAB_ERR_SYNTAX;
    fab_inventory_destroy(&inv);
    if (rc == PMIXFAB_ERR_SYNTAX)
        fprintf(stderr, "mkfabric: %s: not a form; try net, capture or info\n", argv[2]);
    else if (rc != PMIXFAB_OK)
        fprintf(stderr, "mkfabric: standard output: write failed\n");
    return rc == PMIXFAB_OK ? 0 : rc == PMIXFAB_ERR_SYNTAX ? 2 : 1;
}
