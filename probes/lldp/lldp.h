/*
 * lldp.h - inside of the probe `lldp`: asking lldpd, and reading what it heard.
 */
#ifndef FAB_PROBE_LLDP_H
#define FAB_PROBE_LLDP_H

#include "probes/core/probe.h"

#define LLDP_DEADLINE_MS 5000
#define LLDP_MAX_OUTPUT  (8u << 20) /* bytes */

struct lldp_output {
    char *text; /* free() it; may be NULL when size is 0 */
    size_t size;
};

/*
 * Run lldpctl, found in PATH or where the system keeps such programs, at most so long. socket: of lldpd,
 * NULL: lldpctl's own. PMIXFAB_ERR_UNSUPPORTED: there is no lldpctl, or lldpd does not answer it; _TIMEOUT,
 * _RANGE (more than LLDP_MAX_OUTPUT), _IO, _NOMEM. *out is empty on error.
 */
int lldp_ask(const char *socket, unsigned deadline_ms, struct lldp_output *out, struct fab_err *err);

/*
 * An item for each interface that hears one switch, from the output of `lldpctl -f json0` or a recorded
 * machine: what the text is, it says itself. name: what errors call it. Only who says that it bridges or
 * routes, or does not say what it does, is a switch: two hosts on one cable hear each other, too. Of an
 * interface that hears several nothing is reported, with a note. PMIXFAB_ERR_SYNTAX, _NOMEM, _RANGE; what
 * record_parse() says.
 */
int lldp_read(const char *text, size_t size, const char *name, const struct probe_sink *sink,
              struct fab_report *report, struct fab_err *err);

#endif
