/*
 * ask.h - one question to the daemon of the run directory, and its answer; what fails is told.
 */
#ifndef FABRICCTL_CORE_ASK_H
#define FABRICCTL_CORE_ASK_H

#include "fabricctl/core/ctl_control.h"

#define CTL_ANSWER_SECONDS 30 /* for what the daemon knows already */

/* The daemon cannot be asked over PMIx: tells so. */
enum ctl_exit ctl_control_only(const struct ctl *ctl, const char *command);

/* Ask the daemon; takes the request, whose "op" is called as the command. Tells its failures. */
enum ctl_exit ctl_ask(const struct ctl *ctl, json_t *request, int seconds, json_t **answer);
/* The same, and show the answer. */
enum ctl_exit ctl_ask_show(const struct ctl *ctl, json_t *request, int seconds,
                           enum ctl_exit (*show)(const struct ctl *ctl, const json_t *answer));

/*
 * Ask for what goes on: *control is open behind the first answer, and ctl_control_next() has the lines behind
 * it. From here on interrupts end the work. Takes the request; tells its failures, and then *control is NULL.
 */
enum ctl_exit ctl_ask_stream(const struct ctl *ctl, json_t *request, struct ctl_control **control,
                             json_t **first);

#endif
