/*
 * packed.h - what a stranger's library has packed, looked through before this side's library unpacks it.
 *
 * The library believes each count and each length. Here they are compared with the bytes that are there,
 * strings end inside of them, and types are those that tools send. Nothing is copied. Format: that of the
 * modules v4 and v41.
 */
#ifndef FAB_MCA_DOOR_PACKED_H
#define FAB_MCA_DOOR_PACKED_H

#include <pmix_common.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packed {
    const uint8_t *at;
    size_t left;
    bool described;   /* types stand before what was packed by one call */
    unsigned objects; /* infos, names and the like that the library would make room for */
};

/* n values of a type, packed by one call; exactly n. */
bool packed_skip(struct packed *in, pmix_data_type_t type, size_t n);

/* The same of n statuses, and what they are. */
bool packed_statuses(struct packed *in, size_t n, pmix_status_t *out);

/* The same of one value, and what it is. NULL: it is no string at all. */
bool packed_byte(struct packed *in, pmix_data_type_t type, uint8_t *out);
bool packed_count(struct packed *in, size_t *out); /* PMIX_SIZE */
bool packed_string(struct packed *in, const char **out);

/* A count and so many infos. With `check` each must please it. */
typedef bool (*packed_info_fn)(const char *key, pmix_data_type_t type, pmix_data_type_t of);
bool packed_infos(struct packed *in, packed_info_fn check);

#endif
