/*
 * show.h - the room of what fabricctl shows: what planes hold, what changes, what looks wrong, where jobs go.
 */
#ifndef FABRICCTL_SHOW_SHOW_H
#define FABRICCTL_SHOW_SHOW_H

#include "fabricctl/core/ctl.h"

/* ---- commands ---- */

enum ctl_exit ctl_list(const struct ctl *ctl); /* planes, switches, links, groups, rails, coords */
enum ctl_exit ctl_devices(const struct ctl *ctl);
enum ctl_exit ctl_show(const struct ctl *ctl);
enum ctl_exit ctl_cost(const struct ctl *ctl);
enum ctl_exit ctl_where(const struct ctl *ctl);
enum ctl_exit ctl_place(const struct ctl *ctl);
enum ctl_exit ctl_order(const struct ctl *ctl);
enum ctl_exit ctl_history(const struct ctl *ctl);
enum ctl_exit ctl_watch(const struct ctl *ctl);
enum ctl_exit ctl_diff(const struct ctl *ctl);
enum ctl_exit ctl_events(const struct ctl *ctl);
enum ctl_exit ctl_refresh(const struct ctl *ctl);
enum ctl_exit ctl_verify(const struct ctl *ctl);
enum ctl_exit ctl_expect(const struct ctl *ctl);
enum ctl_exit ctl_check(const struct ctl *ctl);
enum ctl_exit ctl_counters(const struct ctl *ctl);
enum ctl_exit ctl_ack(const struct ctl *ctl);

/* ---- lists of what planes hold ---- */

/* Writes one plane's rows; false when that is impossible or of no use any more. */
typedef bool ctl_list_fn(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                         const struct pmixfab_plane *plane);

/* Fill an open table with the rows of a view's planes, and close it. */
enum ctl_exit ctl_list_view(struct ctl_table *table, const struct ctl *ctl, const struct ctl_view *view,
                            ctl_list_fn *list);
/* The list of the command of this name, of the planes and names that the command line asks for; a name that
 * nothing has is a failure. Of devices any name of theirs is taken, not a host's only. */
enum ctl_exit ctl_list_named(const struct ctl *ctl, const char *command);
/* The same list of a view's planes; with `into` as JSON rows appended to it. */
enum ctl_exit ctl_list_into(const struct ctl *ctl, const struct ctl_view *view, const char *command,
                            json_t *into);

/* An array of what is known of a device: kind, text, sources (array), chosen, conflict, estimate. NULL
 * without memory. */
json_t *ctl_facts_json(const struct pmixfab *fab, uint32_t device);
/* For people: the device, and a line for each fact that is chosen: kind, text, sources, and in brackets what
 * other sources say and whether it is an estimate. A device without facts gets no lines. */
void ctl_facts_print(const struct pmixfab *fab, const char *plane, uint32_t device);

/* LID of a node (port 0: a switch's own) or of one of its ports; null where it is not known. No snapshot has
 * it, nor widths: the daemon of the run directory is asked, once. */
void ctl_put_lid(struct ctl_table *table, const struct ctl *ctl, uint64_t guid, uint32_t port);
/* Width and speed of the link at a port, as "4xHDR". */
void ctl_put_width(struct ctl_table *table, const struct ctl *ctl, uint64_t guid, uint32_t port);

/* ---- names ---- */

#define CTL_LABEL_SIZE 256
#define CTL_SHOWN_SIZE 300 /* a name of 255 bytes, and a GUID */

/* "host:device" or "host:device:port", as `cost` takes it. */
void ctl_device_label(const struct pmixfab_device *device, bool with_port, char *buf, size_t size);

/* "rail2", of rails in all planes. */
#define CTL_RAIL_SIZE 16
const char *ctl_rail_name(uint32_t rail, char name[CTL_RAIL_SIZE]);

/* Is it asked for by its name or GUID or both, as it is shown (of a device: its host's with or without a
 * domain, "host:device", "host:device:port", its id, its GUIDs), or is nothing? Remembers which names were
 * met. */
bool ctl_wants_switch(const struct ctl *ctl, const struct pmixfab_switch *sw);
bool ctl_wants_device(const struct ctl *ctl, const struct pmixfab_device *device);
bool ctl_wants_name(const struct ctl *ctl, const char *name);
/* CTL_FAILED with a message where a name was never met. `kind` "switch", `command` where they are shown. */
enum ctl_exit ctl_wanted_met(const struct ctl *ctl, const char *kind, const char *command);

/* The kinds of names (enum ctl_names) that a command takes; 0: none. */
unsigned ctl_names_of(const char *command);

/* The same name, or one of them without a domain and the other equal up to its own? */
bool ctl_same_host(const char *a, const char *b);
/* The host that is meant, as it is called: with or without its domain. NULL: none, or it could be several,
 * with a message. */
const char *ctl_find_host(const struct ctl *ctl, const struct ctl_view *view, const char *asked);

/* The names that several switches or devices ("host:device") of these planes have; json_decref() it. NULL
 * without memory. */
json_t *ctl_shared_names(const struct ctl_view *view);
/* The name, with " (0x...)" behind it where it is one of `shared` (NULL: none is). A name that is longer than
 * the buffer is cut, the GUID is not. */
const char *ctl_name_shown(const json_t *shared, const char *name, uint64_t guid,
                           char buf[static CTL_SHOWN_SIZE]);
/* The leaf that a group is named after; false: it has its name from elsewhere. */
bool ctl_group_leaf(const struct pmixfab *fab, uint32_t g, struct pmixfab_switch *sw);
/* A group's name, with the GUID of such a leaf where its name is one of `shared`. */
const char *ctl_group_shown(const json_t *shared, const struct pmixfab *fab, uint32_t g,
                            char buf[static CTL_SHOWN_SIZE]);

/* ---- changes and findings ---- */

/* A sweep has a deadline of its own, which the operator may have set high; a daemon that stops closes the
 * socket. */
#define CTL_SWEEP_SECONDS 900

/* The rows of `changes` (an array of the daemon's, or NULL) as a table on standard output. */
enum ctl_exit ctl_changes_table(const struct ctl *ctl, const json_t *changes);
/* The same table on `out`. */
enum ctl_exit ctl_changes_write(FILE *out, const struct ctl *ctl, const json_t *changes);
/* The same rows as JSON, a new reference; NULL: with a message. */
json_t *ctl_changes_json(const struct ctl *ctl, const json_t *changes);

/* True where `what` names the host: as a whole word, node1 is not in "node10 HCA-1". */
bool ctl_mentions(const char *what, const char *host);

/* 1 notice, 2 warning, 3 error; 0: it is none. NULL allowed. */
int ctl_severity(const char *name);

/* "1 error, 2 warnings", "none"; of `findings` in the daemon's status. */
#define CTL_FINDINGS_WORDS 120
const char *ctl_findings_words(const json_t *summary, char text[static CTL_FINDINGS_WORDS]);

#endif
