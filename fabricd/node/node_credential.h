/*
 * node_credential.h - munge credentials for the node, made beside its loop: a munged that hangs is waited for
 * by a thread.
 */
#ifndef FABRICD_NODE_NODE_CREDENTIAL_H
#define FABRICD_NODE_NODE_CREDENTIAL_H

#include <event2/event.h>
#include <munge.h>

#include "pmixfab.h"

struct credential;

/* On the loop, once. credential: free()d by who calls; NULL where `failed` is not EMUNGE_SUCCESS. */
typedef void (*credential_done_fn)(munge_err_t failed, const char *credential, void *cbdata);

/* Takes the bytes, from malloc(), also where it fails: PMIXFAB_ERR_NOMEM. */
int credential_make(struct event_base *base, void *bytes, size_t size, credential_done_fn done, void *cbdata,
                    struct credential **out);

/* `done` is not called any more; what munged says is dropped, when it does. Before `done` only; NULL allowed.
 */
void credential_cancel(struct credential *credential);

#endif
