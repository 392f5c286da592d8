/* Credentials made beside the loop: a munged that hangs holds nobody up, also not who stops. */

#include <event2/thread.h>
#include <pthread.h>

#include "fabricd/node/node_credential.h"
#include "test/unit/test.h"

/* ---- a munged that answers when it may ------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool hangs;
static unsigned n_asked, n_answered;
static munge_err_t says;

munge_err_t munge_encode(char **credential, munge_ctx_t context, const void *bytes, int size)
{
    (void)context;
    pthread_mutex_lock(&lock);
    n_asked++;
    pthread_cond_broadcast(&changed);
    while (hangs)
        pthread_cond_wait(&changed, &lock);
    munge_err_t rc = says;
    n_answered++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    *credential = NULL;
    if (rc == EMUNGE_SUCCESS && asprintf(credential, "<%.*s>", size, (const char *)bytes) < 0)
        return EMUNGE_NO_MEMORY;
    return rc;
}

static void set_hangs(bool value)
{
    pthread_mutex_lock(&lock);
    hangs = value;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_for(const unsigned *number, unsigned value)
{
    pthread_mutex_lock(&lock);
    while (*number < value)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* ---- the loop --------------------------------------------------------------------------------------- */

static struct event_base *base;
static unsigned n_done;
static munge_err_t last_failed;
static char last[64];

static void on_done(munge_err_t failed, const char *credential, void *cbdata)
{
    assert_ptr_equal(cbdata, &n_done);
    assert_true((failed == EMUNGE_SUCCESS) == (credential != NULL));
    last_failed = failed;
    snprintf(last, sizeof(last), "%s", credential == NULL ? "" : credential);
    n_done++;
    event_base_loopbreak(base);
}

static struct credential *ask(const char *bytes)
{
    struct credential *credential;
    must_do(credential_make(base, strdup(bytes), strlen(bytes), on_done, &n_done, &credential));
    return credential;
}

FIXTURE(start)
{
    hangs = false;
    says = EMUNGE_SUCCESS;
    n_asked = n_answered = n_done = 0;
    base = event_base_new();
    return base == NULL;
}

FIXTURE(stop)
{
    event_base_free(base);
    return 0;
}

TEST_WITH(test_made, start, stop)
{
    for (unsigned i = 0; i < 200; i++) {
        const char *bytes = printed("report %u", i);
        says = i % 3 == 0 ? EMUNGE_SOCKET : EMUNGE_SUCCESS;
        ask(bytes);
        assert_int_equal(event_base_loop(base, EVLOOP_NO_EXIT_ON_EMPTY), 0);
        assert_int_equal(n_done, i + 1);
        assert_int_equal(last_failed, says);
        if (says == EMUNGE_SUCCESS)
            assert_int_equal(strncmp(last + 1, bytes, strlen(bytes)), 0);
    }
}

TEST_WITH(test_hangs, start, stop)
{
    set_hangs(true);
    ask("one");
    wait_for(&n_asked, 1);
    for (int i = 0; i < 10; i++) /* the loop turns */
        event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(n_done, 0);
    set_hangs(false);
    event_base_loop(base, EVLOOP_NO_EXIT_ON_EMPTY);
    assert_int_equal(n_done, 1);
    assert_string_equal(last, "<one>");
}

/* Before munged answers, after it, and at any moment. */
TEST_WITH(test_cancelled, start, stop)
{
    credential_cancel(NULL);
    set_hangs(true);
    struct credential *credential = ask("one");
    wait_for(&n_asked, 1);
    credential_cancel(credential);
    set_hangs(false);
    wait_for(&n_answered, 1);
    for (unsigned i = 0; i < 500; i++) {
        credential = ask("two");
        if (i % 2 == 0)
            wait_for(&n_answered, i + 2);
        credential_cancel(credential);
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
    wait_for(&n_answered, 501);
    assert_int_equal(n_done, 0);
}

FIXTURE(use_threads)
{
    return evthread_use_pthreads();
}

TEST_GROUP(use_threads, NULL)
