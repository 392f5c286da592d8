#include "test/fabrics/fabrics.h"

#include <stdlib.h>
#include <string.h>

#include "test/fabrics/build.h"

/* No generated fabric has more of anything. */
#define MOST (1u << 20)

int fabric_fattree2(struct fab_inventory *inv, unsigned leaves, unsigned spines, unsigned hosts_per_leaf,
                    unsigned cables)
{
    struct build b;
    build_begin(&b, inv);
    if (leaves == 0 || leaves > MOST || spines > 254 || hosts_per_leaf > 254 || cables > 254)
        b.rc = PMIXFAB_ERR_RANGE;
    unsigned leaf_ports = hosts_per_leaf + spines * cables, spine_ports = leaves * cables;
    uint32_t first_leaf = b.inv->n_nodes;
    for (unsigned l = 0; l < leaves && b.rc == PMIXFAB_OK; l++)
        build_switch(&b, leaf_ports == 0 ? 1 : leaf_ports, "leaf%u", l + 1);
    uint32_t first_spine = b.inv->n_nodes;
    for (unsigned s = 0; s < spines && b.rc == PMIXFAB_OK; s++)
        build_switch(&b, spine_ports == 0 ? 1 : spine_ports, "spine%u", s + 1);
    for (unsigned l = 0; l < leaves && b.rc == PMIXFAB_OK; l++) {
        for (unsigned h = 0; h < hosts_per_leaf; h++)
            build_simple_host(&b, first_leaf + l, h + 1);
        for (unsigned up = 0; up < spines * cables; up++)
            build_cable(&b, first_leaf + l, hosts_per_leaf + up + 1, first_spine + up / cables,
                        l * cables + up % cables + 1, 4, FAB_HDR);
    }
    return build_end(&b);
}

int fabric_fattree3(struct fab_inventory *inv, unsigned k)
{
    struct build b;
    build_begin(&b, inv);
    unsigned half = k / 2;
    if (half == 0 || k % 2 != 0 || k > 254)
        return PMIXFAB_ERR_RANGE;
    /* In the order of the GUIDs: all leaves, all middle switches, all cores. */
    for (unsigned i = 0; i < k * half && b.rc == PMIXFAB_OK; i++)
        build_switch(&b, k, "leaf%u-%u", i / half, i % half);
    for (unsigned i = 0; i < k * half && b.rc == PMIXFAB_OK; i++)
        build_switch(&b, k, "mid%u-%u", i / half, i % half);
    for (unsigned i = 0; i < half * half && b.rc == PMIXFAB_OK; i++)
        build_switch(&b, k, "core%u", i + 1);
    uint32_t mids = k * half, cores = 2 * k * half;
    for (unsigned leaf = 0; leaf < k * half && b.rc == PMIXFAB_OK; leaf++) {
        unsigned pod = leaf / half, row = leaf % half;
        for (unsigned h = 0; h < half; h++)
            build_simple_host(&b, leaf, h + 1);
        for (unsigned m = 0; m < half; m++)
            build_cable(&b, leaf, half + m + 1, mids + pod * half + m, row + 1, 4, FAB_HDR);
    }
    for (unsigned mid = 0; mid < k * half && b.rc == PMIXFAB_OK; mid++) {
        unsigned pod = mid / half, column = mid % half;
        for (unsigned c = 0; c < half; c++)
            build_cable(&b, mids + mid, half + c + 1, cores + column * half + c, pod + 1, 4, FAB_HDR);
    }
    return build_end(&b);
}

/* Cables between the groups: channel c (0 .. a*h-1) of a group leads to the c-th of the other groups, and
 * starts at router c / h, global port c % h. */
static void cable_groups(struct build *b, unsigned p, unsigned a, unsigned h)
{
    unsigned groups = a * h + 1;
    for (unsigned g = 0; g < groups && b->rc == PMIXFAB_OK; g++) {
        for (unsigned c = g; c < a * h; c++) {
            unsigned other = c + 1, back = g;
            build_cable(b, g * a + c / h, p + a + c % h, other * a + back / h, p + a + back % h, 4, FAB_HDR);
        }
    }
}

int fabric_dragonfly(struct fab_inventory *inv, unsigned p, unsigned a, unsigned h)
{
    struct build b;
    build_begin(&b, inv);
    if (a == 0 || a > 254 || h > 254 || p > 254 || p + a - 1 + h > 254)
        return PMIXFAB_ERR_RANGE;
    unsigned routers = a * (a * h + 1), ports = p + a - 1 + h;
    for (unsigned r = 0; r < routers && b.rc == PMIXFAB_OK; r++)
        build_switch(&b, ports == 0 ? 1 : ports, "r%u-%u", r / a, r % a);
    for (unsigned r = 0; r < routers && b.rc == PMIXFAB_OK; r++)
        for (unsigned i = 0; i < p; i++)
            build_simple_host(&b, r, i + 1);
    /* Inside a group all pairs: the port towards router j is the j-th, the own one left out. */
    for (unsigned r = 0; r < routers && b.rc == PMIXFAB_OK; r++) {
        unsigned me = r % a;
        for (unsigned j = me + 1; j < a; j++)
            build_cable(&b, r, p + j, r - me + j, p + me + 1, 4, FAB_HDR);
    }
    if (b.rc == PMIXFAB_OK)
        cable_groups(&b, p, a, h);
    return build_end(&b);
}

/* Cable switch `at` with its neighbour upwards in dimension d; stride: distance of the two indices. */
static void cable_up(struct build *b, unsigned at, unsigned d, unsigned position, unsigned size,
                     unsigned stride, int wrap, unsigned hosts)
{
    unsigned up = at + stride;
    if (position + 1 == size) {
        if (!wrap || size < 3)
            return;
        up = at - stride * (size - 1);
    }
    build_cable(b, at, hosts + 2 * d + 1, up, hosts + 2 * d + 2, 4, FAB_HDR);
}

int fabric_grid(struct fab_inventory *inv, const unsigned *size, unsigned n, int wrap, unsigned hosts)
{
    struct build b;
    build_begin(&b, inv);
    if (n < 2 || n > 3 || hosts > 248)
        b.rc = PMIXFAB_ERR_RANGE;
    unsigned full[3] = {1, 1, 1}, count = 1;
    for (unsigned d = 0; d < n && b.rc == PMIXFAB_OK; d++) {
        full[d] = size[d];
        if (size[d] == 0 || size[d] > 1024 || (count *= size[d]) > MOST)
            b.rc = PMIXFAB_ERR_RANGE;
    }
    unsigned stride[3] = {full[1] * full[2], full[2], 1};
    for (unsigned i = 0; i < count && b.rc == PMIXFAB_OK; i++) {
        unsigned x = i / stride[0], y = i / stride[1] % full[1], z = i % full[2];
        if (n == 2)
            build_switch(&b, hosts + 4, "s%u-%u", x, y);
        else
            build_switch(&b, hosts + 6, "s%u-%u-%u", x, y, z);
    }
    for (unsigned i = 0; i < count && b.rc == PMIXFAB_OK; i++)
        for (unsigned h = 0; h < hosts; h++)
            build_simple_host(&b, i, h + 1);
    for (unsigned i = 0; i < count && b.rc == PMIXFAB_OK; i++)
        for (unsigned d = 0; d < n; d++)
            cable_up(&b, i, d, i / stride[d] % full[d], full[d], stride[d], wrap, hosts);
    return build_end(&b);
}

/* Numbers separated by commas, up to a colon or the end. Returns how many, 0 where the text is not of that
 * form. */
static unsigned parse_list(const char **at, unsigned *values, unsigned most)
{
    const char *p = *at;
    for (unsigned n = 0; n < most; n++) {
        unsigned value = 0;
        if (*p < '0' || *p > '9')
            return 0;
        for (; *p >= '0' && *p <= '9'; p++) {
            value = value * 10 + (unsigned)(*p - '0');
            if (value > MOST)
                return 0;
        }
        values[n] = value;
        *at = p;
        if (*p == '\0' || *p == ':')
            return n + 1;
        if (*p++ != ',')
            return 0;
    }
    return 0;
}

static bool is_kind(const char *text, size_t len, const char *kind)
{
    return strlen(kind) == len && memcmp(text, kind, len) == 0;
}

int fabric_parse(const char *text, struct fab_inventory *inv)
{
    unsigned v[4] = {0}, behind = 0;
    fab_inventory_init(inv);
    const char *at = strchr(text, ':');
    if (at == NULL)
        return PMIXFAB_ERR_SYNTAX;
    size_t len = (size_t)(at - text);
    at++;
    unsigned n = parse_list(&at, v, 4);
    bool colon = *at == ':';
    if (n == 0 || (colon && (at++, parse_list(&at, &behind, 1) != 1)) || *at != '\0')
        return PMIXFAB_ERR_SYNTAX;
    if (is_kind(text, len, "fattree2") && (n == 3 || n == 4) && !colon)
        return fabric_fattree2(inv, v[0], v[1], v[2], n == 4 ? v[3] : 1);
    if (is_kind(text, len, "fattree3") && n == 1 && !colon)
        return fabric_fattree3(inv, v[0]);
    if (is_kind(text, len, "dragonfly") && n == 3 && !colon)
        return fabric_dragonfly(inv, v[0], v[1], v[2]);
    if (is_kind(text, len, "torus") && (n == 2 || n == 3) && colon)
        return fabric_grid(inv, v, n, 1, behind);
    if (is_kind(text, len, "mesh") && (n == 2 || n == 3) && colon)
        return fabric_grid(inv, v, n, 0, behind);
    if (is_kind(text, len, "random") && n == 3 && colon)
        return fabric_random(inv, v[0], v[1], v[2], 1, behind);
    if (is_kind(text, len, "rails") && n == 4)
        return fabric_rails(inv, v[0], v[1], v[2], v[3], behind);
    return PMIXFAB_ERR_SYNTAX;
}
