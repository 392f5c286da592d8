/* What nodes deliver, on its way in; munged and the resolver are stand-ins that can fail. */

#include <arpa/inet.h>
#include <event2/thread.h>
#include <pthread.h>
#include <unistd.h>
#include <utlist.h>

#include "fabricd/ingest/entry.h"
#include "pmix/relay/relay.h"
#include "test/unit/delivered.h"

/* ---- stand-ins ---- */

/* What the next credentials are: all the same, or one by one as their text says. */
static struct {
    munge_err_t error;
    uid_t uid;
    const char *origin;
    const void *bytes;
    int size;
    const char *address; /* of every host; NULL: none is known */
    const char *ours;
    int resolver; /* EAI_... of every name; 0: as above */
    int64_t takes, now;
    unsigned resolved; /* so many times */
} lab;

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_opened = PTHREAD_COND_INITIALIZER;
static pthread_cond_t gate_reached = PTHREAD_COND_INITIALIZER;
static bool gate_closed, at_the_gate; /* munged takes its time; somebody waits for it */

static void set_gate(bool closed)
{
    pthread_mutex_lock(&gate);
    gate_closed = closed;
    pthread_cond_broadcast(&gate_opened);
    pthread_mutex_unlock(&gate);
}

/* With the gate locked: somebody comes to it, or leaves. */
static void tell_at_the_gate(bool there)
{
    at_the_gate = there;
    pthread_cond_broadcast(&gate_reached);
}

static void wait_until_at_the_gate(bool there)
{
    pthread_mutex_lock(&gate);
    while (at_the_gate != there)
        pthread_cond_wait(&gate_reached, &gate);
    pthread_mutex_unlock(&gate);
}

static munge_err_t lab_decode(const char *credential, struct ingest_credential *out)
{
    (void)credential;
    pthread_mutex_lock(&gate);
    tell_at_the_gate(gate_closed);
    while (gate_closed)
        pthread_cond_wait(&gate_opened, &gate);
    pthread_mutex_unlock(&gate);
    out->uid = lab.uid;
    inet_pton(AF_INET, lab.origin, &out->origin);
    if (lab.bytes != NULL) {
        out->bytes = malloc((size_t)lab.size + 1);
        memcpy(out->bytes, lab.bytes, (size_t)lab.size);
        out->size = lab.size;
    }
    munge_err_t error = lab.error;
    pthread_mutex_lock(&gate);
    tell_at_the_gate(false);
    pthread_mutex_unlock(&gate);
    return error;
}

static int lab_resolve(const char *host, struct addrinfo **out)
{
    const struct addrinfo hints = {
        .ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    (void)host;
    lab.resolved++;
    lab.now += lab.takes;
    if (lab.resolver != 0)
        return lab.resolver;
    return lab.address == NULL ? EAI_NONAME : getaddrinfo(lab.address, NULL, &hints, out);
}

static int64_t lab_clock(void)
{
    return lab.now;
}

static bool lab_is_ours(struct in_addr address)
{
    struct in_addr ours;
    return lab.ours != NULL && inet_pton(AF_INET, lab.ours, &ours) == 1 && ours.s_addr == address.s_addr;
}

static const struct ingest_calls lab_calls = {lab_decode, lab_resolve, lab_is_ours, 60, lab_clock};
static const struct ingest_calls hasty_calls = {lab_decode, lab_resolve, lab_is_ours, 0, lab_clock};

/* Of a host with nothing in it; lab.size is its size. */
static void *lab_delivery(const char *host)
{
    size_t size;
    void *bytes = delivery_of(host, NULL, 0, &size);
    lab.size = (int)size;
    return bytes;
}

static int lab_setup(void **state)
{
    memset(&lab, 0, sizeof(lab));
    lab.origin = lab.address = "10.0.0.7";
    lab.bytes = *state = lab_delivery("node7");
    ingest_calls = &lab_calls;
    ingest_names_clear();
    return 0;
}

static int lab_teardown(void **state)
{
    free(*state);
    return 0;
}

#define LAB_TEST(name) TEST_WITH(name, lab_setup, lab_teardown)

/* ---- who is believed ---- */

static void open_as(int code, const char *part)
{
    const struct ingest_rules rules = {
        .calls = &lab_calls, .host = "head", .node_user = "fab", .node_uid = 77};
    struct fab_delivery delivery;
    struct fab_err err = {""};
    OWNED(free) void *bytes = NULL;
    unsigned uid;
    int rc = ingest_open(&rules, "MUNGE:x:", &delivery, &bytes, &uid, &err);
    must_fail(rc, code, &err, part);
    assert_null(strchr(err.text, '\n'));
    if (rc == PMIXFAB_OK) {
        assert_int_equal(uid, lab.uid);
        assert_true((const char *)delivery.body > (const char *)bytes);
    }
}

LAB_TEST(test_users)
{
    open_as(PMIXFAB_OK, "");
    lab.uid = 77;
    open_as(PMIXFAB_OK, "");
    lab.uid = 1000;
    open_as(PMIXFAB_ERR_PERM,
            "node7: uid 1000 on 10.0.0.7 may not describe a host: that is for root and fab");
}

LAB_TEST(test_hosts)
{
    lab.address = "10.0.0.8";
    open_as(PMIXFAB_ERR_PERM, "node7: uid 0 on 10.0.0.7 may not describe this host, which is 10.0.0.8");
    lab.address = NULL;
    open_as(PMIXFAB_ERR_PERM, "node7: the scheduler's host cannot resolve this name");
    lab.now += 2000;
    lab.address = "10.0.0.8";
    lab.ours = "10.0.0.7"; /* somebody here, but of another host */
    open_as(PMIXFAB_ERR_PERM, "may not describe this host");
    lab.ours = NULL;
    lab.origin = "127.0.1.1";
    open_as(PMIXFAB_ERR_PERM, "--origin");
    lab.origin = "0.0.0.0";
    open_as(PMIXFAB_ERR_PERM, "--origin");
}

static void deliver_for(const char *host, int code, const char *part)
{
    const void *bytes = lab.bytes;
    const int size = lab.size;
    OWNED(free) void *own = lab_delivery(host);
    lab.bytes = own;
    open_as(code, part);
    lab.bytes = bytes;
    lab.size = size;
}

/* That nobody answers says nothing of the name: it is not refused for good. */
LAB_TEST(test_no_name_server)
{
    static const int errors[] = {EAI_AGAIN, EAI_SYSTEM, EAI_MEMORY, EAI_FAIL};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        lab.resolver = errors[i];
        open_as(PMIXFAB_ERR_BUSY, "node7: the scheduler's host cannot resolve this name now");
        ingest_names_clear();
    }
    lab.resolver = 0;
    open_as(PMIXFAB_OK, "");
    lab.resolver = EAI_AGAIN;
    lab.takes = 3000;
    lab.now += 40000; /* the answer is not believed any more, but there is no other one */
    open_as(PMIXFAB_OK, "");
    lab.resolved = 0;
    open_as(PMIXFAB_OK, "");
    deliver_for("node8", PMIXFAB_ERR_BUSY, "cannot resolve this name now");
    assert_int_equal(lab.resolved, 0); /* it was away a moment ago */
    lab.now += 3000;
    open_as(PMIXFAB_OK, "");
    lab.now += 12000;
    deliver_for("node8", PMIXFAB_ERR_BUSY, "cannot resolve this name now");
    assert_int_equal(lab.resolved, 2);
    lab.now += 12000;
    lab.resolver = 0;
    lab.takes = 0;
    lab.address = "10.0.0.9"; /* it is back, and says that the host has moved */
    open_as(PMIXFAB_ERR_PERM, "which is 10.0.0.9");
    lab.resolver = EAI_AGAIN;
    open_as(PMIXFAB_ERR_BUSY, "cannot resolve this name now"); /* what it said last is no right */
    lab.resolver = EAI_NONAME;
    lab.now += 4000000;
    open_as(PMIXFAB_ERR_PERM, "cannot resolve this name");
}

LAB_TEST(test_names_are_remembered)
{
    for (int i = 0; i < 29; i++, lab.now += 1000)
        open_as(PMIXFAB_OK, "");
    assert_int_equal(lab.resolved, 1);
    lab.now += 1000;
    open_as(PMIXFAB_OK, "");
    assert_int_equal(lab.resolved, 2);
    lab.address = lab.origin = "10.0.0.8"; /* one that has moved is asked for at once */
    open_as(PMIXFAB_OK, "");
    assert_int_equal(lab.resolved, 3);
    lab.origin = "10.0.0.7"; /* and where it was, it is not any more */
    open_as(PMIXFAB_ERR_PERM, "which is 10.0.0.8");
    lab.address = NULL;
    lab.resolved = 0;
    for (int i = 0; i < 10; i++)
        deliver_for("nowhere", PMIXFAB_ERR_PERM, "cannot resolve this name");
    assert_int_equal(lab.resolved, 1);
    lab.now += 2000;
    lab.address = "10.0.0.7"; /* it was put into DNS */
    deliver_for("nowhere", PMIXFAB_OK, "");
    char host[32]; /* memory is bounded */
    for (int i = 0; i < 40000; i++) {
        snprintf(host, sizeof(host), "many%d", i);
        deliver_for(host, PMIXFAB_OK, "");
    }
}

/* One who names what nobody knows takes a fifth of the thread's time at most; others are not held up. */
LAB_TEST(test_names_that_take_long)
{
    lab.address = NULL;
    lab.takes = 3000;
    const int64_t start = lab.now;
    int64_t free_at = 0;
    for (int i = 0; i < 1000; i++, lab.now += 50) {
        const char *host = printed("nowhere%d", i);
        const bool waits = i > 0 && lab.now < free_at;
        deliver_for(host, waits ? PMIXFAB_ERR_BUSY : PMIXFAB_ERR_PERM,
                    waits ? "could not resolve, which took long" : "cannot resolve this name");
        if (!waits)
            free_at = lab.now + 4 * lab.takes;
    }
    assert_true((int64_t)lab.resolved * lab.takes <= (lab.now - start) / 5 + lab.takes);
    lab.origin = "10.0.0.8"; /* another one */
    lab.address = "10.0.0.8";
    lab.takes = 0;
    open_as(PMIXFAB_OK, "");
}

/* Names of a zone whose server fails, or that nobody has, cost those who have one nothing. */
LAB_TEST(test_names_that_are_made_up)
{
    open_as(PMIXFAB_OK, "");
    lab.resolver = EAI_AGAIN;
    lab.takes = 20;
    deliver_for("no1.broken", PMIXFAB_ERR_BUSY, "cannot resolve this name now");
    lab.resolver = 0;
    deliver_for("node8", PMIXFAB_OK, ""); /* at once, and not known before */
    lab.address = NULL;
    lab.takes = 0;
    for (int i = 0; i < 20000; i++)
        deliver_for(printed("nowhere%d", i), PMIXFAB_ERR_PERM, "cannot resolve this name");
    lab.resolved = 0;
    open_as(PMIXFAB_OK, "");
    assert_int_equal(lab.resolved, 0);
}

LAB_TEST(test_this_host)
{
    char name[256] = "";
    static const char *const names[] = {"head", "head.cluster", NULL};
    gethostname(name, sizeof(name) - 1);
    lab.address = NULL; /* needs no resolver */
    for (int i = 0; i < 3; i++) {
        void *bytes = lab_delivery(names[i] == NULL ? name : names[i]);
        lab.bytes = bytes;
        lab.origin = lab.ours = "127.0.0.1";
        open_as(PMIXFAB_OK, "");
        lab.origin = lab.ours = "10.0.0.1";
        open_as(PMIXFAB_OK, "");
        lab.origin = "10.0.0.2";
        open_as(PMIXFAB_ERR_PERM, "cannot resolve");
        free(bytes);
    }
    void *bytes = lab_delivery("header");
    lab.bytes = bytes;
    lab.origin = "10.0.0.1";
    open_as(PMIXFAB_ERR_PERM, "cannot resolve");
    free(bytes);
}

LAB_TEST(test_credentials)
{
    static const struct {
        munge_err_t error;
        int code;
        const char *part;
    } cases[] = {
        {EMUNGE_CRED_EXPIRED, PMIXFAB_ERR_PERM, "uid 5 on 10.0.0.7 has expired: are the clocks"},
        {EMUNGE_CRED_REWOUND, PMIXFAB_ERR_PERM, "uid 5 on 10.0.0.7 was made in the future"},
        {EMUNGE_CRED_REPLAYED, PMIXFAB_ERR_PERM, "uid 5 on 10.0.0.7 was used before"},
        {EMUNGE_CRED_UNAUTHORIZED, PMIXFAB_ERR_PERM, "for another user"},
        {EMUNGE_CRED_INVALID, PMIXFAB_ERR_PERM, "altered, or made with another key"},
        {EMUNGE_BAD_CRED, PMIXFAB_ERR_PERM, "altered, or made with another key"},
        {EMUNGE_SOCKET, PMIXFAB_ERR_UNREACH, "no munged answers"},
        {EMUNGE_NO_MEMORY, PMIXFAB_ERR_NOMEM, "memory"},
        {EMUNGE_SNAFU, PMIXFAB_ERR_PERM, "munged does not accept"},
    };
    lab.uid = 5;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        lab.error = cases[i].error; /* with the payload beside it, as libmunge gives it for some of them */
        open_as(cases[i].code, cases[i].part);
    }
}

static void no_delivery(void)
{
    const struct ingest_rules rules = {.calls = &lab_calls, .host = "head"};
    struct fab_delivery delivery;
    struct fab_err err = {""};
    OWNED(free) void *bytes = NULL;
    unsigned uid;
    assert_true(ingest_open(&rules, "MUNGE:x:", &delivery, &bytes, &uid, &err) < 0);
    assert_non_null(strstr(err.text, "the credential of uid 0 on 10.0.0.7 holds no delivery: "));
}

LAB_TEST(test_payloads)
{
    char *bytes = *state;
    int whole = lab.size;
    for (lab.size = 0; lab.size < whole; lab.size++)
        no_delivery();
    for (int i = 0; i < whole; i++) {
        bytes[i] ^= 0x40;
        no_delivery();
        bytes[i] ^= 0x40;
    }
    open_as(PMIXFAB_OK, "");
    lab.bytes = "an order of another program";
    lab.size = 27;
    no_delivery();
    lab.bytes = NULL;
    lab.size = 0;
    no_delivery();
}

/* ---- how often ---- */

LAB_TEST(test_buckets)
{
    int64_t now = 1000000;
    char host[32];
    for (int i = 0; i < INGEST_BURST; i++)
        assert_true(ingest_allow("node1", now));
    assert_false(ingest_allow("node1", now));
    assert_true(ingest_allow("node2", now)); /* another host's is its own */
    assert_false(ingest_allow("node1", now + INGEST_REFILL_MS - 1));
    assert_true(ingest_allow("node1", now + INGEST_REFILL_MS));
    assert_false(ingest_allow("node1", now + INGEST_REFILL_MS));
    now += 1000 * INGEST_REFILL_MS; /* never more than the burst */
    for (int i = 0; i < INGEST_BURST; i++)
        assert_true(ingest_allow("node1", now));
    assert_false(ingest_allow("node1", now));
    /* Forgetting those that are full again forgets nobody else. */
    for (int i = 0; i < 20000; i++) {
        snprintf(host, sizeof(host), "many%d", i);
        assert_true(ingest_allow(host, now + i / 4));
    }
    assert_false(ingest_allow("node1", now + 10));
    /* A plain model of it: tokens that grow. */
    double tokens = INGEST_BURST;
    int64_t last = now;
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        now += (int64_t)(random % 1700);
        tokens += (double)(now - last) / INGEST_REFILL_MS;
        tokens = tokens > INGEST_BURST ? INGEST_BURST : tokens;
        last = now;
        bool expected = tokens > 1 - 1e-6;
        assert_int_equal(ingest_allow("model", now), expected);
        tokens -= expected;
    }
    ingest_limits_clear();
    for (int i = 0; i < INGEST_BURST; i++)
        assert_true(ingest_allow("node1", 0));
}

LAB_TEST(test_lines)
{
    unsigned unsaid = 9, said = 0;
    assert_true(ingest_say("a", 1000, &unsaid));
    assert_int_equal(unsaid, 0);
    assert_false(ingest_say("a", 1000, &unsaid));
    assert_false(ingest_say("a", 60999, &unsaid));
    assert_true(ingest_say("b", 60999, &unsaid));
    assert_true(ingest_say("a", 61000, &unsaid));
    assert_int_equal(unsaid, 2);
    assert_false(ingest_say("a", 61001, &unsaid));
    for (int i = 0; i < 100000; i++) { /* who varies his lines does not fill the log, nor the memory */
        said += ingest_say(printed("line %d", i), 61002, &unsaid);
    }
    assert_true(said > 100 && said < 2000);
    assert_true(ingest_say("later", 130000, &unsaid));
    ingest_limits_clear();
}

/* ---- the queue ---- */

struct answers {
    unsigned n, good, busy, other, refused;
    char reason[512];
};

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

static void on_answer(pmix_status_t status, pmix_pdata_t data[], size_t n, void *cbdata)
{
    struct answers *answers = cbdata;
    pthread_mutex_lock(&counting);
    answers->n++;
    if (status != PMIX_SUCCESS) {
        answers->refused++;
    } else {
        assert_int_equal(n, 3);
        assert_true(PMIX_CHECK_KEY(&data[0], RELAY_CODE) && data[0].value.type == PMIX_INT32);
        assert_true(PMIX_CHECK_KEY(&data[1], RELAY_REASON) && data[1].value.type == PMIX_STRING);
        assert_true(PMIX_CHECK_KEY(&data[2], RELAY_DIGEST) && data[2].value.type == PMIX_UINT64);
        int code = data[0].value.data.int32;
        answers->good += code == PMIXFAB_OK;
        answers->busy += code == PMIXFAB_ERR_BUSY;
        answers->other += code != PMIXFAB_OK && code != PMIXFAB_ERR_BUSY;
        if (code != PMIXFAB_OK) /* the good ones may be answered last: that is another thread */
            snprintf(answers->reason, sizeof(answers->reason), "%s", data[1].value.data.string);
    }
    pthread_mutex_unlock(&counting);
}

static unsigned read_counter(const unsigned *counter)
{
    pthread_mutex_lock(&counting);
    unsigned n = *counter;
    pthread_mutex_unlock(&counting);
    return n;
}

static unsigned count(const struct answers *answers)
{
    return read_counter(&answers->n);
}

static pmix_status_t give(const char *credential, struct answers *answers)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, RELAY_CREDENTIAL, credential, PMIX_STRING);
    pmix_status_t rc = ingest_deliver(&info, 1, on_answer, answers);
    PMIX_INFO_DESTRUCT(&info);
    return rc;
}

static void take_all(struct ingest_item *list, void *cbdata)
{
    struct ingest_item *item, *next;
    (void)cbdata;
    DL_FOREACH_SAFE(list, item, next)
    {
        assert_string_equal(item->delivery.host, "node7");
        assert_int_equal(item->uid, lab.uid);
        ingest_answer(item, PMIXFAB_OK, item->delivery.digest, "");
    }
}

static struct config config;
static struct event_base *base;

static void start_ingest(void)
{
    config_init(&config);
    assert_int_equal(config_text(&config.host, "head"), PMIXFAB_OK);
    evthread_use_pthreads();
    base = event_base_new();
    assert_non_null(base);
    must_do(ingest_start(base, &config, take_all, NULL, fresh_err()));
}

static void stop_ingest(void)
{
    ingest_stop();
    config_destroy(&config);
    event_base_free(base);
}

static void give_many(unsigned n, const char *credential, struct answers *answers)
{
    for (unsigned i = 0; i < n; i++)
        give(credential, answers);
}

static void turn_until(struct answers *answers, unsigned n)
{
    for (int i = 0; i < 20000 && count(answers) < n; i++) {
        event_base_loop(base, EVLOOP_NONBLOCK);
        usleep(1000);
    }
    assert_int_equal(count(answers), n);
}

static char *credential_of(size_t size)
{
    char *text = must_have(size + 1);
    memset(text, 'x', size);
    return memcpy(text, "MUNGE:", 6);
}

LAB_TEST(test_at_the_door)
{
    struct answers answers = {0};
    pmix_info_t info;
    assert_int_equal(give("MUNGE:x:", &answers), PMIX_SUCCESS); /* not started */
    assert_int_equal(answers.refused, 1);
    start_ingest();
    assert_int_equal(ingest_deliver(NULL, 0, on_answer, &answers), PMIX_ERR_BAD_PARAM);
    PMIX_INFO_LOAD(&info, RELAY_CREDENTIAL, &(bool){true}, PMIX_BOOL);
    assert_int_equal(ingest_deliver(&info, 1, on_answer, &answers), PMIX_ERR_BAD_PARAM);
    give("", &answers);
    give("x", &answers);
    assert_int_equal(answers.other, 2);
    assert_string_equal(answers.reason, "what was delivered is no munge credential");
    OWNED(free) char *large = credential_of(INGEST_MAX_CREDENTIAL + 1);
    give(large, &answers);
    assert_int_equal(answers.other, 3);
    assert_non_null(strstr(answers.reason, "bytes: at most"));
    large[INGEST_MAX_CREDENTIAL] = '\0';
    give(large, &answers);
    turn_until(&answers, 5);
    assert_int_equal(answers.good, 1);
    stop_ingest();
}

LAB_TEST(test_bounds)
{
    struct answers answers = {0};
    start_ingest();
    set_gate(true);
    give_many(INGEST_MAX_ITEMS, "MUNGE:x:", &answers);
    assert_int_equal(count(&answers), 0);
    give("MUNGE:x:", &answers);
    assert_int_equal(answers.busy, 1);
    assert_non_null(strstr(answers.reason, "come again later"));
    set_gate(false);
    turn_until(&answers, INGEST_MAX_ITEMS + 1);
    assert_true(answers.good >= INGEST_BURST); /* the rest is more than one host may deliver at once */
    assert_int_equal(answers.good + answers.busy, answers.n);
    assert_non_null(strstr(answers.reason, "node7 delivers more often"));

    memset(&answers, 0, sizeof(answers));
    OWNED(free) char *large = credential_of(INGEST_MAX_CREDENTIAL);
    set_gate(true);
    unsigned fit = INGEST_MAX_BYTES / INGEST_MAX_CREDENTIAL;
    give_many(fit, large, &answers);
    assert_int_equal(count(&answers), 0);
    give(large, &answers);
    assert_int_equal(answers.busy, 1);
    set_gate(false);
    turn_until(&answers, fit + 1);
    stop_ingest();
}

LAB_TEST(test_no_munged)
{
    struct answers answers = {0};
    lab.error = EMUNGE_SOCKET;
    start_ingest();
    give_many(100, "MUNGE:x:", &answers);
    turn_until(&answers, 100);
    assert_int_equal(answers.other, 100);
    assert_string_equal(answers.reason, INGEST_NO_MUNGED);
    stop_ingest();
}

/* Opens the gate when the stop has begun: the door turns away who comes then. */
static void *open_gate(void *arg)
{
    struct answers *knocks = arg;
    while (read_counter(&knocks->refused) == 0) {
        give("MUNGE:x:", knocks);
        usleep(1000);
    }
    set_gate(false);
    return NULL;
}

LAB_TEST(test_stop)
{
    struct answers answers = {0}, knocks = {0}, late = {0};
    pthread_t thread;
    start_ingest();
    set_gate(true);
    give_many(50, "MUNGE:x:", &answers);
    assert_int_equal(pthread_create(&thread, NULL, open_gate, &knocks), 0);
    stop_ingest();
    pthread_join(thread, NULL);
    assert_int_equal(answers.refused, 50);
    give("MUNGE:x:", &late);
    assert_int_equal(late.refused, 1);
    start_ingest(); /* and again */
    give("MUNGE:x:", &late);
    turn_until(&late, 2);
    assert_int_equal(late.good, 1);
    stop_ingest();
}

/* A munged that does not come back is not waited for: who asked is answered, and the rest is let go later. */
LAB_TEST(test_stop_without_waiting)
{
    struct answers answers = {0};
    ingest_calls = &hasty_calls;
    lab.error = EMUNGE_CRED_INVALID; /* so that the thread asks nothing of the lab after the gate */
    start_ingest();
    set_gate(true);
    give_many(3, "MUNGE:x:", &answers);
    wait_until_at_the_gate(true);
    stop_ingest();
    assert_int_equal(answers.refused, 3);
    set_gate(false);
    wait_until_at_the_gate(false);
    usleep(100000); /* its thread goes its way; what it leaves behind is for the leak checker */
    assert_int_equal(answers.n, 3);
}

/* ---- orders ---- */

struct order {
    unsigned n;
    pmix_status_t status;
    char order[16];
    uint64_t held;
};

static void on_scan_request(pmix_status_t status, pmix_pdata_t data[], size_t n, void *cbdata)
{
    struct order *order = cbdata;
    order->n++;
    order->status = status;
    if (status == PMIX_SUCCESS) {
        assert_int_equal(n, 2);
        assert_true(PMIX_CHECK_KEY(&data[0], RELAY_SCAN_REQUEST) && PMIX_CHECK_KEY(&data[1], RELAY_DIGEST));
        snprintf(order->order, sizeof(order->order), "%s", data[0].value.data.string);
        order->held = data[1].value.data.uint64;
    }
}

static pmix_status_t wait_order(const char *host, uint64_t digest, struct order *order)
{
    pmix_info_t info[2];
    memset(order, 0, sizeof(*order));
    PMIX_INFO_LOAD(&info[0], PMIX_HOSTNAME, host, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], RELAY_DIGEST, &digest, PMIX_UINT64);
    pmix_status_t rc = ingest_scan_requests(info, 2, on_scan_request, order);
    PMIX_INFO_DESTRUCT(&info[0]);
    return rc;
}

static void was_told(const struct order *order, const char *what, uint64_t held)
{
    assert_int_equal(order->n, 1);
    assert_int_equal(order->status, PMIX_SUCCESS);
    assert_string_equal(order->order, what);
    assert_int_equal(order->held, held);
}

LAB_TEST(test_orders)
{
    struct order one, again, two, three;
    assert_int_equal(wait_order("node1", 0, &one), PMIX_ERR_NOT_AVAILABLE);
    start_ingest();
    assert_int_equal(wait_order("no name", 0, &one), PMIX_ERR_BAD_PARAM);
    assert_int_equal(wait_order("", 0, &one), PMIX_ERR_BAD_PARAM);
    assert_int_equal(ingest_scan_requests(NULL, 0, on_scan_request, &one), PMIX_ERR_BAD_PARAM);

    assert_int_equal(wait_order("node1", 11, &one), PMIX_SUCCESS); /* nothing is held */
    was_told(&one, "", 0);
    ingest_acked("node1", 11);
    ingest_acked("node2", 22);
    wait_order("node1", 11, &one);
    wait_order("node1", 11, &again);
    wait_order("node2", 22, &two);
    wait_order("node3", 0, &three); /* has delivered nothing, and nothing is held */
    assert_int_equal(one.n + again.n + two.n + three.n, 0);
    assert_int_equal(ingest_request_scan("node1"), 1);
    was_told(&one, RELAY_SCAN, 11);
    was_told(&again, RELAY_SCAN, 11);
    assert_int_equal(two.n + three.n, 0);
    assert_int_equal(ingest_request_scan("node9"), 0);
    assert_int_equal(ingest_request_scan(NULL), 2);
    was_told(&two, RELAY_SCAN, 22);
    was_told(&three, RELAY_SCAN, 0);

    wait_order("node1", 11, &one); /* the order to all came between two questions of this one */
    was_told(&one, RELAY_SCAN, 11);
    wait_order("node1", 11, &one); /* and it is one order */
    assert_int_equal(one.n, 0);
    ingest_acked("node1", 12);
    was_told(&one, "", 12);
    wait_order("node1", 12, &one);
    wait_order("node2", 22, &two);
    ingest_acked("node1", 12);
    assert_int_equal(one.n, 0);
    ingest_acked("node2", 0); /* forgotten */
    was_told(&two, "", 0);
    stop_ingest();
    assert_int_equal(one.n, 1);
    assert_int_equal(one.status, PMIX_ERR_NOT_AVAILABLE);
}
