/* counter_values.h - what a port counts of itself, as its performance management tells it. */
#ifndef FAB_PROBES_CORE_COUNTER_VALUES_H
#define FAB_PROBES_CORE_COUNTER_VALUES_H

#include <stdbool.h>
#include <stdint.h>

enum probe_counter {
    COUNTER_SYMBOL_ERRORS,
    COUNTER_LINK_RECOVERIES,
    COUNTER_LINK_DOWNED,
    COUNTER_RECEIVE_ERRORS,
    COUNTER_LOCAL_INTEGRITY,
    COUNTER_BUFFER_OVERRUNS,
    COUNTER_REMOTE_ERRORS,
    COUNTER_DISCARDS,
    COUNTER_SENT_WORDS, /* of 4 bytes */
    COUNTER_RECEIVED_WORDS,
    COUNTER_SENT_PACKETS,
    COUNTER_RECEIVED_PACKETS,
    PROBE_COUNTERS
};

struct probe_counter_kind {
    const char *key;   /* in JSON */
    const char *words; /* for people */
    uint64_t max;      /* where it stays */
    bool error;        /* that it grows says that this link is bad */
    unsigned usual;    /* more is too much, by the thresholds of ibqueryerrors; 0: any number is good */
};
extern const struct probe_counter_kind probe_counter_kinds[PROBE_COUNTERS];

enum probe_reading_state {
    READING_NONE, /* no probe knows the port */
    READING_GOOD,
    READING_SILENT, /* no answer */
    READING_REFUSED /* the device has no performance management, or not of this port */
};

/* A port, by its node's GUID and its number; and what it said. */
struct probe_reading {
    uint64_t guid;
    uint32_t num, state; /* enum probe_reading_state */
    uint64_t value[PROBE_COUNTERS];
};

#endif
