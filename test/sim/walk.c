/*
 * walk.c - a site of 500 hosts and two planes lives for a while: cards, cables and switches are swapped,
 * reboot and flap, the subnet manager dies, sweeps fail, the daemon is restarted and killed, the power and
 * the disk fail, the clock jumps. After each generation the oracle looks at what is served; at the end the
 * history is told without a gap.
 */
#include "test/sim/walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/played.h"

#define FABRIC  "fattree2:20,5,25,1+fattree2:20,5,25,1"
#define LEAVES  20
#define SPINES  5
#define HOSTS   500
#define PENDING 64 /* things that are out, and come back */

/* What a hand puts right later. */
struct repair {
    int64_t at;
    char node[24];
    unsigned port;
    enum { PLUG, SWEEPS, DISK, MANAGER } what;
};

struct walk {
    struct sim *s;
    struct repair repairs[PENDING];
    unsigned n;
    uint64_t next_guid;
    struct walk_counts counts;
};

static unsigned roll(unsigned sides)
{
    return (unsigned)(seam_random() % sides);
}

static const char *a_leaf(char name[24])
{
    snprintf(name, 24, "leaf%u%s", 1 + roll(LEAVES), roll(2) ? "b" : "");
    return name;
}

static const char *a_spine(char name[24])
{
    snprintf(name, 24, "spine%u%s", 1 + roll(SPINES), roll(2) ? "b" : "");
    return name;
}

static const char *a_host(char name[24])
{
    snprintf(name, 24, "node%04u%s", 1 + roll(HOSTS), roll(2) ? "-2" : "");
    return name;
}

static void later(struct walk *w, int64_t after, const char *node, unsigned port, int what)
{
    struct repair *repair = &w->repairs[w->n++];
    *repair = (struct repair){.at = seam_monotonic() + after, .port = port, .what = what};
    snprintf(repair->node, sizeof(repair->node), "%s", node);
}

static void put_right(struct walk *w, unsigned i)
{
    const struct repair repair = w->repairs[i];
    w->repairs[i] = w->repairs[--w->n];
    if (repair.what == PLUG)
        sim_plug(w->s, repair.node, repair.port);
    else if (repair.what == SWEEPS)
        sim_sweeps(w->s, SIM_SWEEPS_GOOD, NULL);
    else if (repair.what == DISK)
        sim_disk(w->s, SIM_DISK_GOOD);
    else
        sim_manager(w->s, "node0001");
}

/* Time passes; what is out comes back when it is its time. */
static void live(struct walk *w, int64_t time)
{
    const int64_t until = seam_monotonic() + time;
    for (;;) {
        unsigned first = w->n;
        for (unsigned i = 0; i < w->n; i++)
            if (w->repairs[i].at <= until && (first == w->n || w->repairs[i].at < w->repairs[first].at))
                first = i;
        if (first == w->n)
            break;
        if (w->repairs[first].at > seam_monotonic())
            sim_advance(w->s, w->repairs[first].at - seam_monotonic());
        put_right(w, first);
    }
    if (until > seam_monotonic())
        sim_advance(w->s, until - seam_monotonic());
}

static int64_t some(int64_t unit, unsigned most)
{
    return unit * (1 + roll(most));
}

static void restart(struct walk *w, unsigned how)
{
    const uint64_t announced = sim_updated(w->s);
    if (how == 0)
        sim_stop(w->s);
    else
        sim_kill(w->s, how == 2);
    w->counts.restarts++;
    sim_disk(w->s, SIM_DISK_GOOD); /* what cannot be opened is another story */
    if (sim_start(w->s) != 0)
        sim_fail("the daemon does not start");
    if (sim_generation(w->s) < announced)
        sim_fail("generation %" PRIu64 " was announced, and %" PRIu64 " is served", announced,
                 sim_generation(w->s));
}

static void flap(struct walk *w, const char *node)
{
    const unsigned toggles = 3 + roll(8);
    for (unsigned i = 0; i < toggles; i++) {
        sim_pull(w->s, node, 1);
        live(w, some(SIM_SECOND, 40));
        sim_plug(w->s, node, 1);
        live(w, some(SIM_SECOND, 40));
    }
}

static void hand(struct walk *w)
{
    char node[24], request[80];
    w->counts.hands++;
    switch (roll(16)) {
    case 0:
    case 1: /* a host's cable, for minutes or days */
        sim_pull(w->s, a_host(node), 1);
        later(w, roll(2) ? some(60 * SIM_SECOND, 30) : some(SIM_HOUR, 60), node, 1, PLUG);
        break;
    case 2: /* a host reboots */
        sim_pull(w->s, a_host(node), 0);
        later(w, some(60 * SIM_SECOND, 10), node, 0, PLUG);
        break;
    case 3: /* a card is swapped */
        sim_pull(w->s, a_host(node), 0);
        live(w, some(60 * SIM_SECOND, 20));
        sim_replace(w->s, node, w->next_guid += 16);
        sim_plug(w->s, node, 0);
        break;
    case 4:
        sim_pull(w->s, a_leaf(node), 0);
        later(w, some(60 * SIM_SECOND, 10), node, 0, PLUG);
        break;
    case 5:
        sim_pull(w->s, a_spine(node), 0);
        later(w, some(60 * SIM_SECOND, 120), node, 0, PLUG);
        break;
    case 6: /* a leaf is swapped */
        sim_replace(w->s, a_leaf(node), w->next_guid += 16);
        break;
    case 7: { /* an uplink */
        const unsigned port = 26 + roll(SPINES);
        sim_pull(w->s, a_leaf(node), port);
        later(w, some(SIM_HOUR, 48), node, port, PLUG);
        break;
    }
    case 8:
        flap(w, a_host(node));
        break;
    case 9:
        sim_sweeps(w->s, SIM_SWEEPS_FAIL + roll(3), NULL);
        later(w, some(60 * SIM_SECOND, 90), "", 0, SWEEPS);
        break;
    case 10:
        sim_manager(w->s, NULL);
        later(w, some(60 * SIM_SECOND, 30), "", 0, MANAGER);
        break;
    case 11:
        restart(w, roll(3));
        break;
    case 12:
        sim_disk(w->s, roll(2) ? SIM_DISK_FULL : SIM_DISK_FAILS);
        later(w, some(60 * SIM_SECOND, 60), "", 0, DISK);
        break;
    case 13:
        sim_jump(w->s, (int64_t)(roll(7200) - 3600) * SIM_SECOND);
        break;
    case 14: /* a host reports another firmware */
        snprintf(node, sizeof(node), "node%04u", 1 + roll(HOSTS));
        snprintf(request, sizeof(request), "20.%u", roll(4));
        sim_deliver(w->s, node, request);
        break;
    case 15:
        snprintf(request, sizeof(request), "{\"op\":\"forget\",\"host\":\"node%04u\"}", 1 + roll(HOSTS));
        sim_request(w->s, request);
        break;
    }
}

static void walk_configure(struct sim *s)
{
    sim_configure(s, "fabricd", "interval", "3600");
    sim_configure(s, "changes", "light_sweep", "60");
    sim_configure(s, "changes", "flap_count", "0"); /* the oracle knows no suppressed cables */
    sim_configure(s, "history", "days", "30");
    /* Nobody changes a counter here, and each batch of a round reads the whole inventory. */
    sim_configure(s, "check", "counters_round", "86400");
}

struct walk_counts walk(uint64_t seed, int64_t time)
{
    struct walk *w = calloc(1, sizeof(*w));
    if (w == NULL)
        sim_fail("out of memory");
    w->s = sim_new(seed, FABRIC);
    w->next_guid = UINT64_C(0x900000000);
    walk_configure(w->s);
    sim_manager(w->s, "node0001");
    if (sim_start(w->s) != 0)
        sim_fail("the daemon does not start");
    const int64_t end = seam_monotonic() + time;
    while (seam_monotonic() < end) {
        hand(w);
        live(w, some(60 * SIM_SECOND, 600));
    }
    while (w->n > 0)
        put_right(w, 0);
    sim_sweep(w->s);
    w->counts.generations = sim_generation(w->s);
    const struct walk_counts counts = w->counts;
    sim_free(w->s);
    free(w);
    return counts;
}
