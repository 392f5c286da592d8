/*
 * ctl_control.h - talk to a fabricd through the control socket of its run directory (docs/control.md).
 *
 * The functions tell nothing themselves: what failed, where and what to do is left in `why`.
 */
#ifndef FABRICCTL_CORE_CTL_CONTROL_H
#define FABRICCTL_CORE_CTL_CONTROL_H

#include <jansson.h>

#include "fabricctl/core/ctl.h"

#define CTL_WHY_SIZE   600
#define CTL_ANSWER_MAX (64u << 20) /* bytes of one line */

struct ctl_control;

/* Connect. CTL_FAILED with `why` where nobody answers. */
enum ctl_exit ctl_control_open(const char *rundir, struct ctl_control **out, char why[static CTL_WHY_SIZE]);
/* The same over a connected socket, which is taken over. */
enum ctl_exit ctl_control_adopt(int fd, const char *where, struct ctl_control **out,
                                char why[static CTL_WHY_SIZE]);
void ctl_control_close(struct ctl_control *control);

/* Send a request; takes the reference. */
enum ctl_exit ctl_control_send(struct ctl_control *control, json_t *request, char why[static CTL_WHY_SIZE]);

/*
 * The next line, an object; *line is NULL on failure. Waits at most `seconds` (negative: without end, but
 * ends when standard output has no reader any more, or by an interrupt: CTL_DONE with *line NULL).
 */
enum ctl_exit ctl_control_next(struct ctl_control *control, int seconds, json_t **line,
                               char why[static CTL_WHY_SIZE]);

/*
 * One question: connect, send (takes the reference), show progress lines and a refusal's mistakes, and wait
 * for the last line, at most `seconds` from one line to the next. An answer that is not `ok` is a failure.
 * Where the answer goes on, the rest is asked for, too: the answer has it all.
 */
enum ctl_exit ctl_control_ask(const char *rundir, json_t *request, int seconds, json_t **answer,
                              char why[static CTL_WHY_SIZE]);

/* The same over a connection, and where the daemon asks for a file's descriptor it gets this one. */
enum ctl_exit ctl_control_give(struct ctl_control *control, json_t *request, int fd, int seconds,
                               json_t **answer, char why[static CTL_WHY_SIZE]);

#endif
