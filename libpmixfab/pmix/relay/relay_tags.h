/*
 * relay_tags.h - this process's questions begin at a number that no client reaches, and those of a server
 * that is itself a scheduler to other relays at another than theirs. The hole of the library that this is
 * for: docs/relay.md, "What the stock library does to an attached server".
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
