/*
 * kv.h - what is published, until it is unpublished or its time is over. All on the library's thread, but for
 * start and stop.
 */
#ifndef FABRIC_HOST_DATA_KV_H
#define FABRIC_HOST_DATA_KV_H

#include <event2/event.h>
#include <pmix_server.h>

#include "topo/base/error.h"

/* When the server has started: what the store has is published again. The loop is for timeouts. */
int kv_start(struct event_base *base, const char *store, struct fab_err *err);
/* After the server has stopped. */
void kv_stop(void);

/* The server module's functions. */
pmix_status_t kv_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t n, pmix_op_cbfunc_t cbfunc,
                         void *cbdata);
pmix_status_t kv_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t n,
                        pmix_lookup_cbfunc_t cbfunc, void *cbdata);
pmix_status_t kv_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t n,
                           pmix_op_cbfunc_t cbfunc, void *cbdata);

/* Nobody of this name is connected any more: what is to end with it ends. */
void kv_left(const pmix_proc_t *proc);

/* A process has ended; with PMIX_RANK_WILDCARD all of the namespace. Any thread but the library's. */
void kv_ended(const pmix_proc_t *proc);

#endif
