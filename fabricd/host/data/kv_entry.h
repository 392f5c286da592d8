/* kv_entry.h - one published value, and its name: the range, who that is for, and the key. */
#ifndef FABRICD_HOST_DATA_KV_ENTRY_H
#define FABRICD_HOST_DATA_KV_ENTRY_H

#include <pmix_server.h>
#include <uthash.h>

#define KV_NAME_SIZE (PMIX_MAX_KEYLEN + PMIX_MAX_NSLEN + 32)

struct kv_entry {
    UT_hash_handle hh;
    char name[KV_NAME_SIZE];
    const char *key; /* within it */
    pmix_proc_t publisher;
    uint8_t persistence;
    pmix_value_t value;
    size_t size; /* packed */
};

#endif
