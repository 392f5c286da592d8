/* names.h - names of hosts and devices, from node descriptions or a node-name-map. */
#ifndef FAB_TOPO_MODEL_NAMES_H
#define FAB_TOPO_MODEL_NAMES_H

#include "topo/model/inventory.h"

/*
 * Default pattern: a POSIX extended regular expression for the node description (its first 64 bytes, the
 * maximum of InfiniBand). Group 1 is the host; the last group, if it matches, is the device.
 */
#define FAB_NAMES_PATTERN                                                                                    \
    "^([A-Za-z0-9][A-Za-z0-9._-]*)( +(HCA-[0-9]+|[a-z][a-z0-9_]*[0-9]|[a-z]+x[0-9a-f]{12,16}))?$"

struct fab_names;

/*
 * pattern NULL: the default. The first group of the pattern is the host and its last group the device. A
 * pattern with one group names the host only. PMIXFAB_ERR_SYNTAX: the pattern does not compile, or has no
 * group or more than 9 groups. With the default pattern, a bare factory name (MT and four or more digits) is
 * not a host name. Any other single word is a host name, "localhost" too. With an operator's own pattern
 * every match is a host name.
 */
int fab_names_new(const char *pattern, struct fab_names **out, struct fab_err *err);
void fab_names_free(struct fab_names *names);

/*
 * Set the pattern for names of switches that no map names. The name is made of the groups of the pattern,
 * joined. If the pattern does not match, the name is the description. NULL: the default pattern. It makes
 * NAME of "MF0;NAME:MODEL/U1". For a chip of a director, "MF0;NAME:MODEL/L04/U1", it makes NAME/L04/U1.
 */
int fab_names_switches(struct fab_names *names, const char *pattern, struct fab_err *err);

/*
 * Read a node-name-map in OpenSM's form (a GUID, white space, a name in double quotes; # comments) from text.
 * `file` is for messages: file:line:column. A name of the form `host device` is split by the pattern. If the
 * pattern does not match, the host is the first word. It is the whole name if the first word has no digit and
 * a number follows, or if another name begins with this word and continues differently. PMIXFAB_ERR_CONFLICT:
 * one GUID with two names. A second file adds to the first and has priority. On error nothing is added.
 */
int fab_names_map(struct fab_names *names, const char *file, const char *text, size_t len,
                  struct fab_err *err);

/* As above, but only report each mistake, as file:line:column: reason. */
void fab_names_map_check(const char *file, const char *text, size_t len,
                         void (*tell)(const char *mistake, void *cbdata), void *cbdata);

/*
 * Set host and name of every node: by the map (node GUID) first, then by the pattern (description). An HCA
 * that neither names gets its GUID (0x%016x) as host and unnamed = 1. HCAs of one host without a device name
 * become HCA-1, HCA-2, ... by GUID, skipping used names. The name of a switch is from the map, else from the
 * pattern, else it is the GUID. The name of another node is from the map, else it is the description, else
 * the GUID. Control characters and bytes that are not UTF-8 become '?' in names (never in desc). In host
 * names , ; and : also become '?', because PMIX_FABRIC_GROUPS uses them as separators. A device belongs to a
 * host by the host's name only. Two devices of one host may have one name and are distinguished by GUID.
 * Earlier names are replaced. PMIXFAB_ERR_NOMEM.
 */
int fab_names_apply(const struct fab_names *names, struct fab_inventory *inv, struct fab_err *err);

#endif
