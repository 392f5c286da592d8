/* The relay's table of requests: each is answered once, whatever becomes of the connection. The PMIx
 * library's part is played here: what was looked up is kept, and answered when a test says so. */

#include <pmix.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "pmix/relay/relay_state.h"
#include "test/unit/test.h"
#include "topo/base/milliseconds.h"

/* ---- the library ---------------------------------------------------------------------------------- */

#define MAX_SENT 4096

static struct sent {
    char op[64];
    size_t n;
    pmix_lookup_cbfunc_t fn;
    void *cbdata;
} sent[MAX_SENT];
static size_t n_sent;
static pmix_status_t lookup_status;

pmix_status_t PMIx_Lookup_nb(char **keys, const pmix_info_t info[], size_t n, pmix_lookup_cbfunc_t cbfunc,
                             void *cbdata)
{
    (void)info;
    if (lookup_status != PMIX_SUCCESS)
        return lookup_status;
    assert_true(n_sent < MAX_SENT);
    struct sent *one = &sent[n_sent++];
    snprintf(one->op, sizeof(one->op), "%s", keys[0]);
    one->n = n;
    one->fn = cbfunc;
    one->cbdata = cbdata;
    return PMIX_SUCCESS;
}

/* What is to be done on the library's thread is done at once. */
pmix_status_t PMIx_server_deregister_resources(pmix_info_t info[], size_t n, pmix_op_cbfunc_t cbfunc,
                                               void *cbdata)
{
    (void)info, (void)n;
    if (cbfunc != NULL)
        cbfunc(PMIX_SUCCESS, cbdata);
    return PMIX_SUCCESS;
}

/* ---- askers ------------------------------------------------------------------------------------- */

struct asker {
    unsigned answers;
    pmix_status_t status;
    size_t n;
    int64_t value;
};

static void on_answer(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                      pmix_release_cbfunc_t release, void *release_data)
{
    struct asker *asker = cbdata;
    asker->answers++;
    asker->status = status;
    asker->n = n;
    asker->value = n > 0 ? info[0].value.data.int64 : 0;
    if (release != NULL)
        release(release_data);
}

/* A query with this deadline of its caller, in seconds; 0: none. */
static void ask(unsigned seconds, struct asker *asker)
{
    char *keys[] = {"key", NULL};
    pmix_info_t timeout;
    pmix_query_t query = {.keys = keys, .qualifiers = &timeout, .nqual = seconds > 0};
    PMIX_INFO_LOAD(&timeout, PMIX_TIMEOUT, &seconds, PMIX_UINT32);
    assert_int_equal(pmixfab_server_query(NULL, &query, 1, on_answer, asker), PMIX_SUCCESS);
}

static void ask_register(struct asker *asker)
{
    pmixfab_server_fabric(NULL, PMIX_FABRIC_REQUEST_INFO, NULL, 0, on_answer, asker);
}

/* What a client is told of an error of a query. */
static pmix_status_t as_told(pmix_status_t status)
{
    return PMIX_VERSION_MAJOR < 6 ? PMIX_SUCCESS : status;
}

static void answer(size_t i, pmix_status_t status, int64_t value)
{
    pmix_pdata_t data;
    PMIX_PDATA_CONSTRUCT(&data);
    PMIX_LOAD_KEY(data.key, "value");
    data.value.type = PMIX_INT64;
    data.value.data.int64 = value;
    sent[i].fn(status, status == PMIX_SUCCESS ? &data : NULL, status == PMIX_SUCCESS, sent[i].cbdata);
}

/* ---- the relay, opened by hand and without its thread ---------------------------------------------- */

FIXTURE(open_relay)
{
    fab_relay.open = fab_relay.connected = true;
    fab_relay.closing = false;
    fab_relay.socket = -1;
    fab_relay.bell = eventfd(0, EFD_NONBLOCK);
    fab_relay.wakes_at = INT64_MAX;
    fab_relay.deadline_ms = 10000;
    n_sent = 0;
    lookup_status = PMIX_SUCCESS;
    return fab_relay.bell < 0;
}

static void expire(int64_t now, bool all)
{
    pthread_mutex_lock(&fab_relay.lock);
    relay_expire(&fab_relay, now, all);
    pthread_mutex_unlock(&fab_relay.lock);
}

static void lose(void)
{
    pthread_mutex_lock(&fab_relay.lock);
    relay_lost(&fab_relay);
    pthread_mutex_unlock(&fab_relay.lock);
}

static void reconnect(void)
{
    pthread_mutex_lock(&fab_relay.lock);
    fab_relay.connected = true;
    relay_send_waiting(&fab_relay);
    pthread_mutex_unlock(&fab_relay.lock);
}

FIXTURE(close_relay)
{
    expire(0, true);
    assert_null(fab_relay.list);
    assert_int_equal(fab_relay.waiting, 0);
    close(fab_relay.bell);
    fab_relay.open = fab_relay.connected = false;
    return 0;
}

/* ---- tests -------------------------------------------------------------------------------------- */

TEST_WITH(test_answered, open_relay, close_relay)
{
    struct asker asker = {0};
    ask(1, &asker);
    assert_int_equal(n_sent, 1);
    assert_string_equal(sent[0].op, RELAY_QUERY);
    assert_int_equal(sent[0].n, 1);
    assert_int_equal(asker.answers, 0);
    answer(0, PMIX_SUCCESS, 42);
    assert_int_equal(asker.answers, 1);
    assert_int_equal(asker.status, PMIX_SUCCESS);
    assert_int_equal(asker.value, 42);
    answer(0, PMIX_SUCCESS, 43); /* twice, by a library that is wrong */
    assert_int_equal(asker.answers, 1);
}

TEST_WITH(test_errors, open_relay, close_relay)
{
    struct asker query = {0}, fabric = {0};
    ask(0, &query);
    ask_register(&fabric);
    for (size_t i = 0; i < 2; i++)
        answer(i, PMIX_ERR_NOT_FOUND, 0);
    assert_int_equal(query.status, as_told(PMIX_ERR_NOT_FOUND));
    assert_int_equal(fabric.status, PMIX_ERR_NOT_FOUND);
    assert_int_equal(query.answers + fabric.answers, 2);
}

TEST_WITH(test_refused, open_relay, close_relay)
{
    struct asker asker = {0};
    fab_relay.closing = true;
    ask_register(&asker);
    fab_relay.closing = false;
    fab_relay.open = false;
    ask_register(&asker);
    fab_relay.open = true;
    fab_relay.connected = false;
    ask_register(&asker);
    assert_int_equal(asker.answers, 3);
    assert_int_equal(asker.status, PMIX_ERR_UNREACH);
    assert_int_equal(n_sent, 0);
}

TEST_WITH(test_deadlines, open_relay, close_relay)
{
    struct asker late = {0}, soon = {0};
    ask(9, &late);
    ask(1, &soon);
    expire(fab_now_ms() + 2000, false);
    assert_int_equal(soon.answers, 1); /* asked later, due earlier */
    assert_int_equal(soon.status, as_told(PMIX_ERR_TIMEOUT));
    assert_int_equal(late.answers, 0);
    answer(1, PMIX_SUCCESS, 1); /* too late */
    assert_int_equal(soon.answers, 1);
    answer(0, PMIX_SUCCESS, 7);
    assert_int_equal(late.value, 7);
}

TEST_WITH(test_sent_again, open_relay, close_relay)
{
    struct asker waits = {0}, gives_up = {0};
    ask_register(&waits);
    ask(1, &gives_up);
    assert_int_equal(n_sent, 2);
    lose();
    expire(fab_now_ms() + 2000, false);
    assert_int_equal(gives_up.status, as_told(PMIX_ERR_UNREACH));
    reconnect();
    assert_int_equal(n_sent, 3);
    assert_string_equal(sent[2].op, RELAY_REGISTER);
    answer(0, PMIX_SUCCESS, 1); /* of the connection that was lost */
    assert_int_equal(waits.answers, 0);
    answer(2, PMIX_ERR_NOT_FOUND, 0);
    assert_int_equal(waits.answers, 1);
    assert_int_equal(gives_up.answers, 1);
}

TEST_WITH(test_cannot_be_sent, open_relay, close_relay)
{
    struct asker asker = {0};
    lookup_status = PMIX_ERR_UNREACH;
    ask_register(&asker);
    assert_false(fab_relay.connected);
    expire(fab_now_ms() + 60000, false);
    assert_int_equal(asker.answers, 1);
    assert_int_equal(asker.status, PMIX_ERR_UNREACH);
}

/* Anything in any order: every request is answered once, and with something that can have come about. */
TEST_WITH(test_random, open_relay, close_relay)
{
    enum { N = 1000 };
    static struct asker askers[N];
    size_t asked = 0, next = 0;
    memset(askers, 0, sizeof(askers));
    srand(4711);
    while (asked < N) {
        switch (rand() % 8) {
        case 0:
            lose();
            break;
        case 1:
            reconnect();
            break;
        case 2:
            expire(fab_now_ms() + rand() % 12000, false);
            break;
        case 3:
        case 4: /* whatever was sent, answered in some order, now and then twice */
            if (n_sent > 0)
                answer((size_t)rand() % n_sent, rand() % 3 == 0 ? PMIX_ERR_NOT_FOUND : PMIX_SUCCESS, 1);
            break;
        case 5:
            if (next < n_sent)
                answer(next++, rand() % 20 == 0 ? PMIX_ERR_LOST_CONNECTION : PMIX_SUCCESS, 1);
            break;
        default:
            if (rand() % 2 == 0)
                ask_register(&askers[asked]);
            else
                ask(1 + (unsigned)rand() % 9, &askers[asked]);
            asked++;
        }
        int64_t before = 0; /* the table is in the order of deadlines */
        size_t waiting = 0;
        for (const struct relay_request *r = fab_relay.list; r != NULL; r = r->next) {
            assert_true(r->deadline >= before);
            before = r->deadline;
            waiting += r->id == 0;
        }
        assert_int_equal(waiting, fab_relay.waiting);
    }
    expire(0, true);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(askers[i].answers, 1);
}
