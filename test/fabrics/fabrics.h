/*
 * fabrics.h - generated fabrics for tests and benches.
 *
 * Each generator fills an inventory (finished and named: host "node0001", HCA "HCA-1") and can be written as
 * an ibsim netfile. GUIDs are dense and deterministic: switches from 0x200000, HCAs from 0x100000. Switch
 * names: "leaf1", "spine1", "core1", "r0-3", "s1-2-0" ...; at most 30 characters (ibsim's limit). Hosts are
 * on the low ports of a switch.
 */
#ifndef FAB_TEST_FABRICS_H
#define FAB_TEST_FABRICS_H

#include <stdio.h>

#include "topo/model/inventory.h"

/* Two levels: every leaf has a cable to every spine (`cables` in parallel). */
int fabric_fattree2(struct fab_inventory *inv, unsigned leaves, unsigned spines, unsigned hosts_per_leaf,
                    unsigned cables);
/* Three levels of switches with k ports: k pods of k/2 leaves and k/2 middles, (k/2)^2 cores, k^3/4 hosts. */
int fabric_fattree3(struct fab_inventory *inv, unsigned k);
/* p hosts a router, a routers a group, h global cables a router; a*h+1 groups. */
int fabric_dragonfly(struct fab_inventory *inv, unsigned p, unsigned a, unsigned h);
/* n dimensions (2 or 3), wrap: torus (a dimension of 2 has one cable), hosts on each switch. */
int fabric_grid(struct fab_inventory *inv, const unsigned *size, unsigned n, int wrap, unsigned hosts);
/*
 * Rail-optimised: of each unit as many leaves as rails ("leaf2-3" is rail 3 of unit 2), and on each of them
 * one HCA of each of its hosts. With a seed: some hosts' cards, or some of their cards, have no name but the
 * maker's default; every second unit's are called as another driver does ("mlx5_0"); some cards are not
 * there, and from the third unit on all of a leaf may be.
 */
int fabric_rails(struct fab_inventory *inv, unsigned units, unsigned rails, unsigned hosts, unsigned spines,
                 uint64_t seed);
/* Connected random graph of switches with random hosts, mixed rates and parallel cables; by seed. */
int fabric_random(struct fab_inventory *inv, unsigned switches, unsigned hosts, unsigned extra_cables,
                  int mixed_rates, uint64_t seed);

/* By text: "fattree2:16,8,4", "fattree3:34", "dragonfly:8,16,8", "torus:4,4,4:1", "mesh:4,4:2",
 * "random:30,100,40:7", "rails:4,8,16,4:1" (units, rails, hosts of a unit, spines, seed). PMIXFAB_ERR_SYNTAX
 * otherwise. */
int fabric_parse(const char *text, struct fab_inventory *inv);

/* Write as an ibsim netfile; as ibnetdiscover's text. 0 or PMIXFAB_ERR_IO. */
int fabric_write_netfile(const struct fab_inventory *inv, FILE *out);
int fabric_write_capture(const struct fab_inventory *inv, FILE *out);

/* Name of a node in the netfile (for ibsim's console and SIM_HOST) and below: a switch's name, a host's name
 * for its first HCA, "node0001-2" for its second. Written to buf, which is returned. And back: FAB_NONE. */
const char *fabric_node_name(const struct fab_inventory *inv, uint32_t node, char *buf, size_t size);
uint32_t fabric_find(const struct fab_inventory *inv, const char *name);

/* Pull the cable in a node's port; give it another rate. inv stays finished. PMIXFAB_ERR_NOTFOUND: no cable
 * there. */
int fabric_unlink(struct fab_inventory *inv, const char *node, unsigned port);
int fabric_set_rate(struct fab_inventory *inv, const char *node, unsigned port, unsigned width,
                    enum fab_speed speed);

/*
 * What else a hand does. As after a sweep: switches' empty ports and HCAs without a cable are not there any
 * more. PMIXFAB_ERR_NOTFOUND: no such node or cable; PMIXFAB_ERR_CONFLICT: GUID or port are taken.
 *  - replace: another GUID in a node's place (its ports' GUIDs move with it); so many of its cables are back,
 *    the first ones;
 *  - move: the cable in a node's port keeps that end, the other one goes to the port of another node;
 *  - lose: a node, with its cables.
 */
int fabric_replace(struct fab_inventory *inv, const char *node, uint64_t guid, unsigned cables);
int fabric_move(struct fab_inventory *inv, const char *node, unsigned port, const char *to, unsigned to_port);
int fabric_lose(struct fab_inventory *inv, const char *node);

/* ibsim's options for a fabric of this size: "-N ... -S ... -P ... -L ...". */
void fabric_ibsim_limits(const struct fab_inventory *inv, char *buf, size_t size);

/* xorshift generator for tests. */
uint64_t fabric_random_next(uint64_t *state);

#endif
