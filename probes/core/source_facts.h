/*
 * source_facts.h - for the probes that ask libraries: adding facts as they come, some twice, some of no use.
 *
 * A library says hundreds of times what a report says once, and not all that it says has the form of a fact.
 * What is added here never makes the report one that cannot be finished.
 */
#ifndef FAB_PROBES_CORE_SOURCE_FACTS_H
#define FAB_PROBES_CORE_SOURCE_FACTS_H

#include "probes/core/item.h"

/* Facts of one kind in an item; more are left out. Four such kinds leave room for one of all others. */
#define FACTS_MANY 12

/*
 * Left out, which is no error: NULL, an empty text, one that has not the form of its kind, one that the item
 * has, a second one of a kind without many. item->rc becomes PMIXFAB_ERR_NOMEM, _RANGE (the limits of
 * report.h), _INVAL; after that nothing more is added.
 */
void fact_add(struct probe_item *item, enum fab_fact kind, const char *text);
void fact_estimate(struct probe_item *item, enum fab_fact kind, const char *text);
void fact_printf(struct probe_item *item, enum fab_fact kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A GID from its 16 bytes; and, where the port runs InfiniBand, the port's GUID, which is its second half. */
void fact_gid(struct probe_item *item, const unsigned char gid[16], bool infiniband);

/* What a name is on this host. */
enum fact_interface { FACT_NO_INTERFACE = 0, FACT_INTERFACE = 1, FACT_LOOPBACK = 2 };
enum fact_interface fact_interface(const char *name);

/* For a probe's available(): how many items its scan() finds, as "PREFIXn NOUNs". */
int fact_available(int (*scan)(const struct probe_config *config, const struct probe_sink *sink,
                               struct fab_report *report, struct fab_err *err),
                   const char *prefix, const char *noun, char *text, size_t size);

#endif
