/*
 * changes.h - the room of what changes in the fabric: its commands, and the rows that several of them show.
 */
#ifndef FABRICCTL_SHOW_CHANGES_H
#define FABRICCTL_SHOW_CHANGES_H

#include <jansson.h>
#include <stdio.h>

#include "fabricctl/core/ctl.h"

enum ctl_exit ctl_history(const struct ctl *ctl);
enum ctl_exit ctl_watch(const struct ctl *ctl);
enum ctl_exit ctl_diff(const struct ctl *ctl);
enum ctl_exit ctl_events(const struct ctl *ctl);
enum ctl_exit ctl_refresh(const struct ctl *ctl);
enum ctl_exit ctl_verify(const struct ctl *ctl);
enum ctl_exit ctl_expect(const struct ctl *ctl);

/* A sweep has a deadline of its own, which the operator may have set high; a daemon that stops closes the
 * socket. */
#define CTL_SWEEP_SECONDS 900

/* The rows of `changes` (an array of the daemon's, or NULL) as a table; with `into` appended to it. */
enum ctl_exit ctl_changes_table(const struct ctl *ctl, const json_t *changes, json_t *into);

/* The same table on `out`. */
enum ctl_exit ctl_changes_write(FILE *out, const struct ctl *ctl, const json_t *changes);

/* The same rows as JSON, a new reference; NULL: told. */
json_t *ctl_changes_json(const struct ctl *ctl, const json_t *changes);

/* True where `what` names the host: as a whole word, node1 is not in "node10 HCA-1". */
bool ctl_mentions(const char *what, const char *host);

/* Of an answer about a sweep: a line on what is suppressed, where anything is. */
void ctl_print_suppressed(const json_t *answer);

#endif
