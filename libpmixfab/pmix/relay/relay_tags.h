/*
 * relay_tags.h - two holes of the library that a process with a connection to a server has (docs/relay.md,
 * "What the stock library does to an attached server").
 */
#ifndef FAB_PMIX_RELAY_RELAY_TAGS_H
#define FAB_PMIX_RELAY_RELAY_TAGS_H

/*
 * This process's questions begin at a number that no client reaches.
 *
 * PMIXFAB_OK: done, or not needed. PMIXFAB_ERR_UNSUPPORTED: the running library has the hole, and is not the
 * version that the repair was built for. Does nothing with FABRICD_NO_REPAIR=1 in the environment.
 */
int relay_repair_tags(void);

/*
 * After a connection: what nobody will answer any more is forgotten. In a tool the library answers it with an
 * error when the connection is lost, keeps it, and answers it again, when it is freed, at the next loss.
 */
void relay_repair_unanswered(void);

#endif
