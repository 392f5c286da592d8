/* kv_waiters.h - lookups that wait for what is not published yet. On the library's thread. */
#ifndef FABRICD_HOST_DATA_KV_WAITERS_H
#define FABRICD_HOST_DATA_KV_WAITERS_H

#include <event2/event.h>
#include <pmix_server.h>
#include <stdbool.h>
#include <string.h>

/* It is this one, or one of all with PMIX_RANK_WILDCARD. An empty name is any to PMIX_CHECK_PROCID(). */
static inline bool kv_is_of(const pmix_proc_t *proc, const pmix_proc_t *of)
{
    return strcmp(proc->nspace, of->nspace) == 0 &&
           (of->rank == PMIX_RANK_WILDCARD || proc->rank == of->rank);
}

struct kv_question {
    pmix_proc_t proc;
    uint8_t range;
    char **keys;   /* the library's, until it is answered */
    size_t wanted; /* so many of them, 0: all */
    pmix_lookup_cbfunc_t cbfunc;
    void *cbdata;
};

/* answer: as far as there is one; false: not enough is there yet. The loop is for timeouts. */
int kv_waiters_start(struct event_base *base,
                     bool (*answer)(const struct kv_question *question, bool enough));
void kv_waiters_stop(void);

/* seconds 0: for as long as it takes, or its process lives. PMIX_ERR_OUT_OF_RESOURCE: too many wait. */
pmix_status_t kv_waiters_add(const struct kv_question *question, int seconds);

/* Something was published. */
void kv_waiters_look(void);

/* Nobody waits for their answers any more. */
void kv_waiters_ended(const pmix_proc_t *proc);

#endif
