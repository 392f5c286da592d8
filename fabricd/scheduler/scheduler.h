/*
 * daemon.h - fabricd itself, as a scheduler has it: sweeps in turn, publishing with events around it, reports
 * of nodes, requests of operators.
 */
#ifndef FABRICD_DAEMON_H
#define FABRICD_DAEMON_H

#include "fabricd/config/config.h"
#include "fabricd/discovery/monitor.h"

/* The whole program behind main(). */
int fabricd_main(int argc, char **argv);

struct daemon;

/* ---- what the control socket asks the daemon ------------------------------------------------------ */

/* What there is to say beside the snapshots. Times are microseconds since 1970, 0: none. */
struct daemon_status {
    uint64_t generation;
    int64_t published, stale_since, last_sweep;
    double sweep_ms, publish_s; /* publish_s: from the finished sweep to the files in place */
    uint32_t dangling, unnamed, inactive;
    uint32_t nodes;                           /* how many report */
    uint32_t missing;                         /* HCAs that keep their places, or ports of theirs */
    uint32_t suppressed, suppressed_switches; /* cables that flap; switches that do, with all of theirs */
    bool stale, partial, sweeping;
    unsigned interval;
    unsigned light_sweep; /* seconds between light sweeps, 0: none */
    bool light_sweeps;    /* light sweeps are configured, and there is a probe that can */
    struct monitor_status monitor;
    int64_t dirty_since; /* what waits for its sweep, microseconds since 1970; 0: nothing does */
    char stale_reason[480];
    const char *host; /* this one, as nodes know hosts */
};
void daemon_status(const struct daemon *daemon, struct daemon_status *out);

/*
 * Ask for a sweep that begins after now. sw: one of the switches of this name (or GUID) is enough, and of
 * what was dirty; where that cannot be, everything is swept, and it is told why. NULL: of everything.
 * Returns its number: control_swept() is called with it, or with a higher one, when it is done.
 */
uint64_t daemon_refresh(struct daemon *daemon, const char *sw, bool accept_partial);

/* As publisher_forget(), now. */
uint32_t daemon_forget(struct daemon *daemon, const char *name, bool *there);

int64_t daemon_now(void); /* microseconds since 1970 */

#endif
