/*
 * show.h - interface of the commands that show the fabric: contents of planes, changes, findings, places for
 * jobs.
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

/* ---- lists of the contents of planes ---- */

/* Write one plane's rows; return false if that is impossible or useless. */
typedef bool ctl_list_fn(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                         const struct pmixfab_plane *plane);

/* Fill an open table with the rows of a view's planes, and close it. */
enum ctl_exit ctl_list_view(struct ctl_table *table, const struct ctl *ctl, const struct ctl_view *view,
                            ctl_list_fn *list);
/*
 * Show the list of the command with this name, for the planes and names of the command line. A name without a
 * match is a failure. For devices any name is accepted, not only the name of a host.
 */
enum ctl_exit ctl_list_named(const struct ctl *ctl, const char *command);
/* As above, for a view's planes; with `into`, append JSON rows to it. */
enum ctl_exit ctl_list_into(const struct ctl *ctl, const struct ctl_view *view, const char *command,
                            json_t *into);

/*
 * Return an array of the facts of a device: kind, text, sources (array), chosen, conflict, estimate. NULL
 * without memory.
 */
json_t *ctl_facts_json(const struct pmixfab *fab, uint32_t device);
/*
 * Print the device as text, and a line for each chosen fact. The line has the kind, the text and the sources.
 * The values of other sources are in brackets, and a mark for an estimate. A device without facts gets no
 * lines.
 */
void ctl_facts_print(const struct pmixfab *fab, const char *plane, uint32_t device);

/*
 * Add the LID of a node or of one of its ports (port 0: the switch's own); null if it is unknown. LIDs and
 * widths are in no snapshot, so fabricctl asks the daemon of the run directory once.
 */
void ctl_put_lid(struct ctl_table *table, const struct ctl *ctl, uint64_t guid, uint32_t port);
/* Add the width and speed of the link at a port, as "4xHDR". */
void ctl_put_width(struct ctl_table *table, const struct ctl *ctl, uint64_t guid, uint32_t port);

/* ---- names ---- */

#define CTL_LABEL_SIZE 256
#define CTL_SHOWN_SIZE 300 /* a name of 255 bytes, and a GUID */

/* Format "host:device" or "host:device:port", as `cost` accepts it. */
void ctl_device_label(const struct pmixfab_device *device, bool with_port, char *buf, size_t size);

/* Format "rail2", for rails in all planes. */
#define CTL_RAIL_SIZE 16
const char *ctl_rail_name(uint32_t rail, char name[CTL_RAIL_SIZE]);

/*
 * Return whether the command line requests an object by its name or GUID as shown, or names no object at all.
 * A device can be requested by its host's name with or without a domain, "host:device", "host:device:port",
 * its id, or its GUIDs. The functions record which names had a match.
 */
bool ctl_wants_switch(const struct ctl *ctl, const struct pmixfab_switch *sw);
bool ctl_wants_device(const struct ctl *ctl, const struct pmixfab_device *device);
bool ctl_wants_name(const struct ctl *ctl, const char *name);
/*
 * Return CTL_FAILED with a message if a name had no match. `kind` is for example "switch". `command` is the
 * command that lists these objects.
 */
enum ctl_exit ctl_wanted_met(const struct ctl *ctl, const char *kind, const char *command);

/* Return the kinds of names (enum ctl_names) that a command accepts; 0: no names. */
unsigned ctl_names_of(const char *command);

/* Return whether the names are equal, or one has no domain and equals the other without its domain. */
bool ctl_same_host(const char *a, const char *b);
/*
 * Return the full name of the host, given with or without its domain. NULL: none, or it could be several,
 * with a message.
 */
const char *ctl_find_host(const struct ctl *ctl, const struct ctl_view *view, const char *asked);

/*
 * Return the names that several switches or devices ("host:device") of these planes have; json_decref() it.
 * NULL without memory.
 */
json_t *ctl_shared_names(const struct ctl_view *view);
/*
 * Format the name, followed by " (0x...)" if it is one of `shared` (NULL: none is). A name that is too long
 * for the buffer is cut, the GUID is not.
 */
const char *ctl_name_shown(const json_t *shared, const char *name, uint64_t guid,
                           char buf[static CTL_SHOWN_SIZE]);
/* Find the leaf with the name of the group; false: the name of the group is not that of a leaf. */
bool ctl_group_leaf(const struct pmixfab *fab, uint32_t g, struct pmixfab_switch *sw);
/* Format a group's name, with the GUID of such a leaf if its name is one of `shared`. */
const char *ctl_group_shown(const json_t *shared, const struct pmixfab *fab, uint32_t g,
                            char buf[static CTL_SHOWN_SIZE]);

/* ---- changes and findings ---- */

/*
 * A sweep has its own deadline, which the operator may have set high; a daemon that stops closes the socket.
 */
#define CTL_SWEEP_SECONDS 900

/* Show the rows of `changes` (an array of the daemon's, or NULL) as a table on standard output. */
enum ctl_exit ctl_changes_table(const struct ctl *ctl, const json_t *changes);
/* As above, on `out`. */
enum ctl_exit ctl_changes_write(FILE *out, const struct ctl *ctl, const json_t *changes);
/* Return the same rows as JSON, a new reference. NULL: the function failed and has written a message. */
json_t *ctl_changes_json(const struct ctl *ctl, const json_t *changes);

/* Return whether `what` names the host as a whole word: node1 is not in "node10 HCA-1". */
bool ctl_mentions(const char *what, const char *host);

/* Return 1 for notice, 2 for warning, 3 for error; 0: another word, or NULL. */
int ctl_severity(const char *name);

/* Write "1 error, 2 warnings", "none"; from `findings` in the daemon's status. */
#define CTL_FINDINGS_WORDS 120
const char *ctl_findings_words(const json_t *summary, char text[static CTL_FINDINGS_WORDS]);

#endif
