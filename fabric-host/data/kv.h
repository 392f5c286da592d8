/*
 * kv.h - store published values until they are unpublished or expire. All functions run on the library's
 * thread, except start and stop.
 */
#ifndef FABRIC_HOST_DATA_KV_H
#define FABRIC_HOST_DATA_KV_H

#include <event2/event.h>
#include <pmix_server.h>

#include "topo/base/error.h"

/* Start after the server: publish the stored values again. The loop is for timeouts. */
int kv_start(struct event_base *base, const char *store, struct fab_err *err);
/* Stop after the server has stopped. */
void kv_stop(void);

/* Functions of the server module. */
pmix_status_t kv_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t n, pmix_op_cbfunc_t cbfunc,
                         void *cbdata);
pmix_status_t kv_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t n,
                        pmix_lookup_cbfunc_t cbfunc, void *cbdata);
pmix_status_t kv_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t n,
                           pmix_op_cbfunc_t cbfunc, void *cbdata);

/* Remove the values that end with the last connection of this name. */
void kv_left(const pmix_proc_t *proc);

/*
 * Note that a process has ended. PMIX_RANK_WILDCARD: all processes of the namespace have ended. Call it on
 * any thread except the library's.
 */
void kv_ended(const pmix_proc_t *proc);

#endif
