/* kv_store.h - what outlives the host: SQLite, a row an entry. One thread at a time. */
#ifndef FABRICD_HOST_DATA_KV_STORE_H
#define FABRICD_HOST_DATA_KV_STORE_H

#include <stdbool.h>

#include "fabricd/host/data/kv_entry.h"
#include "topo/base/error.h"

/* found is called with each entry that is there, which it takes over; key and hash handle are not set. */
int kv_store_open(const char *path, void (*found)(struct kv_entry *entry), struct fab_err *err);
void kv_store_close(void);

/* Changes are made together, when they end and were good. False: none is. */
bool kv_store_put(const struct kv_entry *entry, const void *packed);
bool kv_store_delete(const struct kv_entry *entry);
bool kv_store_end(bool good);

#endif
