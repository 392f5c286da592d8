#include <stdlib.h>

#include "test/fabrics/build.h"

uint64_t fabric_random_next(uint64_t *state)
{
    uint64_t x = *state + 0x9e3779b97f4a7c15u; /* a state of 0 would stay 0 */
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x * 0x2545f4914f6cdd1du >> 11;
}

struct dice {
    uint64_t state;
    int mixed;
    unsigned switches;
    unsigned *next_port; /* per switch */
};

static unsigned roll(struct dice *dice, unsigned sides)
{
    return (unsigned)(fabric_random_next(&dice->state) % sides);
}

/* A switch with a free port, looked for from a random one on. */
static unsigned pick_switch(struct build *b, struct dice *dice)
{
    unsigned from = roll(dice, dice->switches);
    for (unsigned i = 0; i < dice->switches; i++) {
        unsigned sw = (from + i) % dice->switches;
        if (dice->next_port[sw] <= 250)
            return sw;
    }
    b->rc = PMIXFAB_ERR_RANGE;
    return 0;
}

/* Rates that a simulated subnet keeps. Half of the cables run at the fastest. */
static void cable(struct build *b, struct dice *dice, unsigned sw, uint32_t to, unsigned to_port)
{
    static const struct {
        unsigned width;
        enum fab_speed speed;
    } rates[] = {{4, FAB_EDR}, {4, FAB_FDR}, {4, FAB_QDR}, {4, FAB_DDR},
                 {1, FAB_HDR}, {1, FAB_EDR}, {12, FAB_QDR}};
    unsigned width = 4;
    enum fab_speed speed = FAB_HDR;
    if (dice->mixed && roll(dice, 2) == 0) {
        unsigned r = roll(dice, sizeof(rates) / sizeof(rates[0]));
        width = rates[r].width;
        speed = rates[r].speed;
    }
    build_cable(b, sw, dice->next_port[sw]++, to, to_port, width, speed);
}

static void random_host(struct build *b, struct dice *dice)
{
    unsigned host = build_host(b), form = roll(dice, 8);
    unsigned hcas = form == 0 ? 2 : 1, ports = form == 1 ? 2 : 1;
    for (unsigned i = 1; i <= hcas; i++) {
        uint32_t hca = build_hca(b, host, i, hcas, ports);
        for (unsigned p = 1; p <= ports && b->rc == PMIXFAB_OK; p++)
            cable(b, dice, pick_switch(b, dice), hca, p);
    }
}

static void random_cables(struct build *b, struct dice *dice, unsigned extra)
{
    for (unsigned i = 1; i < dice->switches && b->rc == PMIXFAB_OK; i++) {
        unsigned to = roll(dice, i);
        while (to > 0 && dice->next_port[to] > 252)
            to--;
        cable(b, dice, i, to, dice->next_port[to]);
        dice->next_port[to]++;
    }
    for (unsigned i = 0; i < extra && dice->switches > 1 && b->rc == PMIXFAB_OK; i++) {
        unsigned from = pick_switch(b, dice), to = pick_switch(b, dice);
        if (from == to)
            continue;
        /* now and then a bundle of parallel cables */
        for (unsigned n = roll(dice, 4) == 0 ? 2 : 1; n > 0 && dice->next_port[from] <= 252; n--) {
            if (dice->next_port[to] > 252)
                break;
            cable(b, dice, from, to, dice->next_port[to]);
            dice->next_port[to]++;
        }
    }
}

int fabric_random(struct fab_inventory *inv, unsigned switches, unsigned hosts, unsigned extra_cables,
                  int mixed_rates, uint64_t seed)
{
    struct build b;
    build_begin(&b, inv);
    struct dice dice = {.state = seed, .mixed = mixed_rates, .switches = switches};
    if (switches == 0)
        b.rc = PMIXFAB_ERR_RANGE;
    else if ((dice.next_port = malloc(switches * sizeof(*dice.next_port))) == NULL)
        b.rc = PMIXFAB_ERR_NOMEM;
    for (unsigned i = 0; i < switches && b.rc == PMIXFAB_OK; i++) {
        dice.next_port[i] = 1;
        build_switch(&b, 254, "sw%u", i + 1);
    }
    for (unsigned i = 0; i < hosts && b.rc == PMIXFAB_OK; i++)
        random_host(&b, &dice);
    if (b.rc == PMIXFAB_OK)
        random_cables(&b, &dice, extra_cables);
    /* Only now it is known how many ports each switch needs; a few stay empty. */
    for (unsigned i = 0; i < switches && b.rc == PMIXFAB_OK; i++)
        inv->nodes[i].num_ports =
            (uint8_t)(dice.next_port[i] - 1 + roll(&dice, 2) + (dice.next_port[i] == 1));
    free(dice.next_port);
    return build_end(&b);
}
