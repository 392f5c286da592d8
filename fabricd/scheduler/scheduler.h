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
    unsigned look;     /* seconds between light sweeps, 0: none */
    bool light_sweeps; /* light sweeps are configured, and there is a probe that can */
    struct monitor_status monitor;
    int64_t dirty_since; /* what waits for its sweep, microseconds since 1970; 0: nothing does */
    char stale_reason[480];
    const char *host; /* this one, as nodes know hosts */
};
void daemon_status(const struct daemon *daemon, struct daemon_status *out);

/*
 * Ask for a sweep that begins after now. Returns its number: daemon_swept() of the control socket is called
 * with it, or with a higher one, when it is done.
 */
uint64_t daemon_sweep(struct daemon *daemon, bool accept_partial);

/* Likewise, but a sweep of the switches of this name (or GUID) is enough, and of what was dirty. Where that
 * cannot be, everything is swept, and it is told why. */
uint64_t daemon_sweep_switch(struct daemon *daemon, const char *name);

/* Release what is suppressed of a host or switch (NULL: everything), for a sweep that follows. Returns how
 * many cables and switches that were. */
uint32_t daemon_release(struct daemon *daemon, const char *name);

/* As publisher_forget(), now. */
uint32_t daemon_forget(struct daemon *daemon, const char *name, bool *there);

struct store;
struct store *daemon_store(struct daemon *daemon);
struct host_reports;
struct host_reports *daemon_nodes(const struct daemon *daemon);
struct publisher;
const struct publisher *daemon_publisher(const struct daemon *daemon);
int64_t daemon_now(void); /* microseconds since 1970 */
struct backup;
struct backup *daemon_backup(const struct daemon *daemon);
const struct config *daemon_config(const struct daemon *daemon);

#endif
