/* side_deliveries.c - what nodes deliver, on its way to fabricd, and the answers on their way back. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "fabricd/front/side/side.h"
#include "fabricd/server/server.h"
#include "guard/guard.h"
#include "pmix/relay/relay.h"
#include "pmix/relay/thread.h"

#define MAX_CREDENTIAL (1u << 20)         /* fabricd refuses smaller ones already, with a reason */
#define BYTES_OF_ALL   ((size_t)64 << 20) /* under way */
#define BYTES_AT_LEAST ((size_t)16 << 10) /* so many each counts for: 4096 of them are under way in all */

/* What is under way of an origin that is not preferred (guard/guard_priv.h): an eighth of all, of all
 * such origins together a half. */
struct delivery_share {
    UT_hash_handle hh;
    struct guard_origin origin;
    size_t bytes;
};

struct under_way {
    UT_hash_handle hh;
    uint32_t number;
    size_t size;
    struct delivery_share *share; /* NULL: of a preferred origin */
    pmix_lookup_cbfunc_t cbfunc;
    void *cbdata;
    bool refused; /* nobody takes it */
    int32_t code;
    uint64_t held;
    char *reason;
};

static struct {
    pthread_mutex_t lock;
    struct under_way *all;
    struct delivery_share *shares;
    size_t bytes, bytes_of_others;
    uint32_t last;
    bool closed;
} deliveries = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the lock is held ------------------------------------------------------------------------------ */

static struct delivery_share *delivery_share_of(const struct guard_origin *origin)
{
    struct delivery_share *share;
    HASH_FIND(hh, deliveries.shares, origin, sizeof(*origin), share);
    if (share != NULL || (share = calloc(1, sizeof(*share))) == NULL)
        return share;
    share->origin = *origin;
    HASH_ADD(hh, deliveries.shares, origin, sizeof(share->origin), share);
    return share;
}

static void delivery_share_drop(struct delivery_share *share)
{
    if (share->bytes > 0)
        return;
    HASH_DEL(deliveries.shares, share); /* NOLINT(clang-analyzer-unix.Malloc): nothing links to a freed one */
    free(share);
}

/* False: too much is under way, in all or of its origin; nothing is counted. */
static bool delivery_take(struct under_way *one)
{
    const struct pmix_guard *guard = guard_find();
    struct guard_origin origin = {0};
    bool preferred = false;
    if (deliveries.closed || deliveries.bytes + one->size > BYTES_OF_ALL)
        return false;
    if (guard == NULL || !guard->working_for(&origin, &preferred) || !preferred) {
        struct delivery_share *share = delivery_share_of(&origin);
        if (share == NULL)
            return false;
        if (share->bytes + one->size > BYTES_OF_ALL / 8 ||
            deliveries.bytes_of_others + one->size > BYTES_OF_ALL / 2) {
            delivery_share_drop(share);
            return false;
        }
        one->share = share;
        share->bytes += one->size;
        deliveries.bytes_of_others += one->size;
    }
    deliveries.bytes += one->size;
    HASH_ADD(hh, deliveries.all, number, sizeof(one->number), one);
    return true;
}

static void delivery_give(struct under_way *one)
{
    HASH_DEL(deliveries.all, one);
    deliveries.bytes -= one->size;
    if (one->share == NULL)
        return;
    deliveries.bytes_of_others -= one->size;
    one->share->bytes -= one->size;
    delivery_share_drop(one->share);
}

/* ---- the answer: on the library's thread ---------------------------------------------------------- */

/* The library packs it before cbfunc returns, so everything in it stays ours. */
static void delivery_send(pmix_status_t status, void *arg)
{
    struct under_way *one = arg;
    pmix_pdata_t data[3];
    static const char *const keys[] = {RELAY_CODE, RELAY_REASON, RELAY_DIGEST};
    (void)status;
    for (size_t i = 0; i < 3; i++) {
        PMIX_PDATA_CONSTRUCT(&data[i]);
        data[i].proc = *server_self();
        PMIX_LOAD_KEY(data[i].key, keys[i]);
    }
    data[0].value.type = PMIX_INT32;
    data[0].value.data.int32 = one->code;
    data[1].value.type = PMIX_STRING;
    data[1].value.data.string = one->reason != NULL ? one->reason : (char *)"";
    data[2].value.type = PMIX_UINT64;
    data[2].value.data.uint64 = one->held;
    if (one->refused)
        one->cbfunc(PMIX_ERR_NOT_AVAILABLE, NULL, 0, one->cbdata);
    else
        one->cbfunc(PMIX_SUCCESS, data, 3, one->cbdata);
    free(one->reason);
    free(one);
}

void side_answer(const struct front_message *message)
{
    const uint32_t number = (uint32_t)message->a;
    struct under_way *one = NULL;
    pthread_mutex_lock(&deliveries.lock);
    HASH_FIND(hh, deliveries.all, &number, sizeof(number), one);
    if (one != NULL)
        delivery_give(one);
    pthread_mutex_unlock(&deliveries.lock);
    if (one == NULL)
        return;
    one->refused = message->kind == FRONT_NOBODY;
    one->code = -(int32_t)message->b;
    one->held = message->c;
    one->reason = strdup(message->text);
    fab_on_pmix_thread(delivery_send, one);
}

void side_refuse_all(void)
{
    struct under_way *one, *next;
    pthread_mutex_lock(&deliveries.lock);
    deliveries.closed = true;
    HASH_ITER(hh, deliveries.all, one, next)
    {
        delivery_give(one);
        one->refused = true;
        fab_on_pmix_thread(delivery_send, one);
    }
    pthread_mutex_unlock(&deliveries.lock);
    fab_wait_for_pmix_thread();
}

/* ---- the question: on the library's thread -------------------------------------------------------- */

static const char *credential_of(const pmix_info_t info[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (PMIX_CHECK_KEY(&info[i], RELAY_CREDENTIAL) && info[i].value.type == PMIX_STRING)
            return info[i].value.data.string;
    return NULL;
}

pmix_status_t side_deliver(const pmix_proc_t *requestor, const pmix_info_t info[], size_t n,
                           pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    (void)requestor; /* the credential says who delivers */
    const char *credential = credential_of(info, n);
    const size_t size = credential == NULL ? 0 : strlen(credential);
    if (credential == NULL || size > MAX_CREDENTIAL)
        return PMIX_ERR_BAD_PARAM;
    struct under_way *one = calloc(1, sizeof(*one));
    if (one == NULL)
        return PMIX_ERR_NOMEM;
    one->cbfunc = cbfunc;
    one->cbdata = cbdata;
    one->size = size > BYTES_AT_LEAST ? size : BYTES_AT_LEAST;
    pthread_mutex_lock(&deliveries.lock);
    const uint32_t number = one->number = ++deliveries.last;
    const bool taken = delivery_take(one);
    pthread_mutex_unlock(&deliveries.lock);
    if (!taken) {
        free(one);
        return PMIX_ERR_NOT_AVAILABLE;
    }
    side_say(&(struct front_message){.kind = FRONT_DELIVERY, .a = number, .text = credential});
    return PMIX_SUCCESS;
}
