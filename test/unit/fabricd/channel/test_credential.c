/* munge and the resolver beside the loop: one after the other, cancelled, away, and hanging. */
#include <netdb.h>
#include <stdatomic.h>

#include "test/unit/channel_world.h"

static struct credential_worker *worker;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: calls hang */
static atomic_uint at_gate, released, n_calls;

static munge_err_t slow_encode(const void *bytes, size_t size, char **text)
{
    n_calls++;
    at_gate++;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    at_gate--;
    return world_encode(bytes, size, text);
}

static int slow_resolve(const char *host, int family, struct credential_addresses *out)
{
    at_gate++;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    at_gate--;
    return strcmp(host, "nobody") == 0 ? EAI_NONAME : world_resolve(host, family, out);
}

static const struct credential_calls slow_calls = {slow_encode, world_decode, slow_resolve};

static int begin(void **state)
{
    (void)state;
    world_begin();
    credential_calls = &slow_calls;
    at_gate = released = n_calls = 0;
    worker = credential_worker_new(world.base);
    return worker == NULL;
}

static int end(void **state)
{
    (void)state;
    credential_worker_free(worker);
    world_end();
    return 0;
}

#define WORKER_TEST(name) TEST_WITH(name, begin, end)

struct said {
    unsigned n;
    munge_err_t munge;
    int code, error;
    bool is_ours;
    char *text;
};

static void on_done(const struct credential_result *result, void *cbdata)
{
    struct said *said = cbdata;
    said->n++;
    said->munge = result->munge;
    said->code = result->code;
    said->error = result->error;
    said->is_ours = result->is_ours;
    free(said->text);
    said->text = result->text == NULL ? NULL : strdup(result->text);
}

static void on_release(const void *bytes, size_t size, void *owner)
{
    (void)bytes, (void)size, (void)owner;
    released++;
}

static const struct channel_seal seal = {CHANNEL_WAIT, 3, "node", "scheduler"};
static const struct channel_body body = {"content", 7, on_release, NULL, NULL};

WORKER_TEST(test_sealed_and_opened)
{
    struct said sealed = {0}, opened = {0};
    struct served_digest digest = {.known = false};
    struct channel_body kept = body;
    kept.digest = &digest;
    assert_non_null(credential_munge(worker, &seal, NULL, &kept, on_done, &sealed));
    assert_int_equal(sealed.n, 0); /* never from within */
    TURN_UNTIL(sealed.n == 1);
    assert_non_null(credential_munge(worker, &seal, strdup(sealed.text), &body, on_done, &opened));
    TURN_UNTIL(opened.n == 1);
    assert_int_equal(opened.code, PMIXFAB_OK);
    assert_non_null(credential_munge(worker, &seal, strdup(sealed.text), &body, on_done, &opened));
    TURN_UNTIL(opened.n == 2);
    assert_int_equal(opened.munge, EMUNGE_CRED_REPLAYED);
    assert_int_equal(released, 0); /* the bytes are the caller's again */
    assert_true(digest.known);
    const struct channel_body known = {"other", 5, on_release, NULL, &digest}; /* it is not computed again */
    assert_non_null(credential_munge(worker, &seal, NULL, &known, on_done, &sealed));
    TURN_UNTIL(sealed.n == 2);
    assert_non_null(credential_munge(worker, &seal, strdup(sealed.text), &body, on_done, &opened));
    TURN_UNTIL(opened.n == 3);
    assert_int_equal(opened.code, PMIXFAB_OK);
    free(sealed.text);
}

/* Two at a time, whatever is cancelled. */
WORKER_TEST(test_hanging)
{
    struct said said[6] = {{0}};
    struct credential_job *jobs[6];
    pthread_mutex_lock(&gate);
    for (unsigned i = 0; i < 6; i++)
        jobs[i] = credential_munge(worker, &seal, NULL, &body, on_done, &said[i]);
    TURN_UNTIL(at_gate == 2);
    credential_cancel(jobs[0]); /* on a thread */
    credential_cancel(jobs[4]); /* in the queue */
    for (unsigned i = 0; i < 30; i++)
        world_turn();
    assert_int_equal(n_calls, 2);
    assert_int_equal(released, 1); /* the bytes of the other are still read */
    pthread_mutex_unlock(&gate);
    TURN_UNTIL(said[1].n + said[2].n + said[3].n + said[5].n == 4);
    assert_int_equal(said[0].n + said[4].n, 0);
    assert_int_equal(n_calls, 5);
    TURN_UNTIL(released == 2);
    for (unsigned i = 0; i < 6; i++)
        free(said[i].text);
}

/* The end does not wait. */
WORKER_TEST(test_end_while_it_hangs)
{
    struct said said = {0};
    pthread_mutex_lock(&gate);
    for (unsigned i = 0; i < 5; i++)
        credential_munge(worker, &seal, NULL, &body, on_done, &said);
    credential_resolve(worker, "node7", AF_INET, on_done, &said);
    TURN_UNTIL(at_gate == 3);
    credential_worker_free(worker);
    worker = NULL;
    assert_int_equal(released, 3);
    pthread_mutex_unlock(&gate);
    while (at_gate > 0 || released < 5)
        poll(NULL, 0, 1);
    assert_int_equal(said.n, 0);
}

/* A munged that does not answer is asked again after a second, and not by each who waits. */
WORKER_TEST(test_away)
{
    struct said said = {0};
    world.away = true;
    for (unsigned i = 0; i < 100; i++)
        credential_munge(worker, &seal, NULL, &body, on_done, &said);
    TURN_UNTIL(said.n == 100);
    assert_int_equal(said.munge, EMUNGE_SOCKET);
    assert_true(n_calls <= 4);
    assert_null(said.text);
    world.away = false;
    credential_munge(worker, &seal, NULL, &body, on_done, &said);
    TURN_UNTIL(said.n == 101);
    assert_int_equal(said.munge, EMUNGE_SOCKET); /* within that second */
}

WORKER_TEST(test_names)
{
    struct said said = {0};
    credential_resolve(worker, "node7", AF_INET, on_done, &said);
    TURN_UNTIL(said.n == 1);
    assert_int_equal(said.error, 0);
    credential_resolve(worker, "nobody", AF_INET, on_done, &said);
    TURN_UNTIL(said.n == 2);
    assert_int_equal(said.error, EAI_NONAME);
    pthread_mutex_lock(&gate);
    credential_cancel(credential_resolve(worker, "node7", AF_INET, on_done, &said));
    struct credential_job *job = credential_resolve(worker, "node7", AF_INET, on_done, &said);
    TURN_UNTIL(at_gate == 1);
    credential_cancel(job);
    pthread_mutex_unlock(&gate);
    TURN_UNTIL(at_gate == 0);
    for (unsigned i = 0; i < 10; i++)
        world_turn();
    assert_int_equal(said.n, 2);
}

/* What its own munged says of this host. */
WORKER_TEST(test_own)
{
    struct said said = {0};
    struct in_addr origin;
    inet_pton(AF_INET, "10.0.0.7", &origin);
    credential_is_ours(worker, origin, on_done, &said);
    TURN_UNTIL(said.n == 1);
    assert_true(said.is_ours);
    world.origin = "127.0.0.1";
    credential_is_ours(worker, origin, on_done, &said);
    TURN_UNTIL(said.n == 2);
    assert_false(said.is_ours);
}

WORKER_TEST(test_explained)
{
    static const struct {
        munge_err_t error;
        int code;
        const char *part;
    } cases[] = {
        {EMUNGE_SUCCESS, PMIXFAB_OK, ""},
        {EMUNGE_CRED_EXPIRED, PMIXFAB_ERR_PERM, "uid 5 on 10.0.0.7 has expired: check that the clocks"},
        {EMUNGE_CRED_REWOUND, PMIXFAB_ERR_PERM, "uid 5 on 10.0.0.7 was made in the future"},
        {EMUNGE_CRED_REPLAYED, PMIXFAB_ERR_PERM, "uid 5 on 10.0.0.7 was used before"},
        {EMUNGE_CRED_UNAUTHORIZED, PMIXFAB_ERR_PERM, "for another user"},
        {EMUNGE_CRED_INVALID, PMIXFAB_ERR_PERM, "altered, or made with another key"},
        {EMUNGE_BAD_CRED, PMIXFAB_ERR_PERM, "altered, or made with another key"},
        {EMUNGE_SOCKET, PMIXFAB_ERR_UNREACH, "no munged answers on this host"},
        {EMUNGE_NO_MEMORY, PMIXFAB_ERR_NOMEM, "memory"},
        {EMUNGE_SNAFU, PMIXFAB_ERR_PERM, "munged rejects"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct credential_result result = {.munge = cases[i].error, .maker = {.uid = 5}};
        struct fab_err err = {""};
        inet_pton(AF_INET, "10.0.0.7", &result.maker.origin);
        must_fail(credential_explain(&result, "this host", &err), cases[i].code, &err, cases[i].part);
    }
}
