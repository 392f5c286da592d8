/*
 * changes.h - what changed in the fabric, as the daemon tells it.
 */
#ifndef FABRICCTL_CHANGES_H
#define FABRICCTL_CHANGES_H

#include "fabricctl/core/control.h"

#define CTL_ANSWER_SECONDS 30 /* for what the daemon knows already */
/* A sweep has a deadline of its own, which the operator may have set high; a daemon that stops closes the
 * socket. */
#define CTL_SWEEP_SECONDS 900

/* The rows of `changes` (an array of the daemon's, or NULL) as a table; with `into` appended to it. */
enum ctl_exit ctl_changes_table(const struct ctl *ctl, const json_t *changes, json_t *into);

/* True where `what` names the host: as a whole word, node1 is not in "node10 HCA-1". */
bool ctl_mentions(const char *what, const char *host);

/* Of an answer about a sweep: a line on what is suppressed, where anything is. */
void ctl_print_suppressed(const json_t *answer);

/* The same rows as JSON, a new reference; NULL: told. */
json_t *ctl_changes_json(const struct ctl *ctl, const json_t *changes);

/* The daemon cannot be asked over PMIx: tells so. */
enum ctl_exit ctl_control_only(const struct ctl *ctl, const char *command);

/* Ask the daemon; takes the request, whose "op" is called as the command. Tells its failures. */
enum ctl_exit ctl_ask(const struct ctl *ctl, json_t *request, int seconds, json_t **answer);
/* The same, and show the answer. */
enum ctl_exit ctl_ask_show(const struct ctl *ctl, json_t *request, int seconds,
                           enum ctl_exit (*show)(const struct ctl *ctl, const json_t *answer));

#endif
