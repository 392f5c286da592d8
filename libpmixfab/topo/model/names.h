/*
 * names.h - what a host and its device are called, from node descriptions or a node-name-map.
 */
#ifndef FAB_TOPO_MODEL_NAMES_H
#define FAB_TOPO_MODEL_NAMES_H

#include "topo/model/inventory.h"

/* Default pattern: a POSIX extended regular expression over the node description (its first 64 bytes, all
 * that an InfiniBand node can say). Group 1 is the host, the last group, where it matches, the device. */
#define FAB_NAMES_PATTERN                                                                                    \
    "^([A-Za-z0-9][A-Za-z0-9._-]*)( +(HCA-[0-9]+|[a-z][a-z0-9_]*[0-9]|[a-z]+x[0-9a-f]{12,16}))?$"

struct fab_names;

/*
 * pattern NULL: the default. The pattern's first group is the host and its last group the device (a pattern
 * with one group names the host only). PMIXFAB_ERR_SYNTAX for a pattern that does not compile, or has no
 * group or more than 9. With the default pattern a bare factory name, MT and four or more digits, is no host
 * name; any other single word is one ("localhost" too). A pattern of the operator's own is taken at its word.
 */
int fab_names_new(const char *pattern, struct fab_names **out, struct fab_err *err);
void fab_names_free(struct fab_names *names);

/*
 * What switches are called that no map names: the groups of this pattern, one after the other, of their
 * descriptions; the description where the pattern does not fit. NULL: the default, by which
 * "MF0;NAME:MODEL/U1" is NAME, and "MF0;NAME:MODEL/L04/U1", a chip of a director, NAME/L04/U1.
 */
int fab_names_switches(struct fab_names *names, const char *pattern, struct fab_err *err);

/*
 * Read a node-name-map in OpenSM's form (a GUID, white space, a name in double quotes; # comments) from text.
 * `file` is for messages: file:line:column. A name of the form `host device` is split by the pattern. Where
 * the pattern does not fit, the host is the first word; or the whole name, where the first word has no digit
 * and a number comes behind it, or another name begins with this word and goes on otherwise. One GUID with
 * two names is PMIXFAB_ERR_CONFLICT. A second file adds to the first and goes before it. On error nothing is
 * taken.
 */
int fab_names_map(struct fab_names *names, const char *file, const char *text, size_t len,
                  struct fab_err *err);

/* The same of nothing but the mistakes: each is told, as file:line:column: reason. */
void fab_names_map_check(const char *file, const char *text, size_t len,
                         void (*tell)(const char *mistake, void *cbdata), void *cbdata);

/*
 * Set host and name of every node: the map by node GUID first, then the pattern over the description. An HCA
 * that neither names gets its GUID (0x%016x) as host and unnamed = 1. HCAs of one host without a device name
 * become HCA-1, HCA-2, ... by GUID, skipping names that are taken. Switches: map, or pattern, or GUID.
 * Others: map, or description, or GUID. Control characters and bytes that are not UTF-8 become '?' in names
 * (never in desc); so do the characters , ; and : in host names, because PMIX_FABRIC_GROUPS separates by
 * them. Devices are joined to a host by its name alone; two devices of one host may have one name, their
 * GUIDs tell them apart. Names that were set before are replaced. Errors: PMIXFAB_ERR_NOMEM.
 */
int fab_names_apply(const struct fab_names *names, struct fab_inventory *inv, struct fab_err *err);

#endif
