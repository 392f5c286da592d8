/*
 * relay_tags.h - a hole of the library that a server which is attached to another one falls into.
 *
 * Up to 5.0 the library gives an incoming message to whoever waits for its number, whoever sent it. A
 * server's questions to the server above it and its clients' requests are numbered from 100 by each for
 * itself: a client's request that has the number of an open question is taken for its answer, and is lost.
 * The repair lets this process's questions begin at a number that no client reaches. A server that is itself
 * a scheduler to other relays begins at another number than they do.
 */
#ifndef FAB_PMIX_RELAY_RELAY_TAGS_H
#define FAB_PMIX_RELAY_RELAY_TAGS_H

#include <stdint.h>

#define RELAY_FIRST_TAG      UINT32_C(0x40000000)
#define RELAY_IN_BETWEEN_TAG UINT32_C(0x60000000)

/*
 * PMIXFAB_OK: done, or not needed. PMIXFAB_ERR_UNSUPPORTED: the running library has the hole, and is not the
 * version that the repair was built for. Does nothing with FABRICD_NO_REPAIR=1 in the environment.
 */
int relay_repair_tags(uint32_t first);

#endif
