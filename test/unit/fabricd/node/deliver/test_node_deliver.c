/* A node's delivering against a model of the scheduler: whatever gets lost, refused or forgotten on the way,
 * in the end the scheduler holds what the node has. Time, munge, the relay and the file in which a report is
 * kept over a restart are played here. */
#include <event2/event.h>
#include <pmix.h>

#include "fabricd/node/deliver/node_credential.h"
#include "fabricd/node/deliver/node_deliver.h"
#include "fabricd/node/deliver/node_state.h"
#include "test/unit/report_say.h"
#include "test/unit/test.h"
#include "topo/report/delivery.h"

/* ---- time: a timer goes off when a test says so ----------------------------------------------------- */

#define MAX_TIMERS 4

static struct timer {
    const struct event *event;
    int64_t ms; /* when it goes off; -1: not set */
} timers[MAX_TIMERS];
static int64_t now; /* milliseconds */

static struct timer *timer_of(const struct event *event)
{
    for (size_t i = 0; i < MAX_TIMERS; i++) {
        if (timers[i].event == NULL)
            timers[i] = (struct timer){event, -1};
        if (timers[i].event == event)
            return &timers[i];
    }
    fail_msg("more timers than a deliver has");
    return NULL;
}

int event_add(struct event *event, const struct timeval *tv)
{
    timer_of(event)->ms = tv == NULL ? -1 : now + (int64_t)tv->tv_sec * 1000 + tv->tv_usec / 1000;
    return 0;
}

int event_del(struct event *event)
{
    timer_of(event)->ms = -1;
    return 0;
}

/* Pauses come by chance: by one that a failure can be repeated with. */
void evutil_secure_rng_get_bytes(void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)(rand() >> 4);
}

static void let_munge_answer(void);

/* The next one that is due; false: none is set. */
static bool let_time_pass(void)
{
    struct timer *next = NULL;
    for (size_t i = 0; i < MAX_TIMERS; i++)
        if (timers[i].event != NULL && timers[i].ms >= 0 && (next == NULL || timers[i].ms < next->ms))
            next = &timers[i];
    if (next == NULL)
        return false;
    now = next->ms;
    next->ms = -1;
    event_get_callback(next->event)(-1, EV_TIMEOUT, event_get_callback_arg(next->event));
    let_munge_answer();
    return true;
}

/* ---- munge: bytes as letters ---------------------------------------------------------------------- */

static munge_err_t munge_status;
static bool munge_hangs;

static struct credential {
    credential_done_fn done; /* NULL: none is being made */
    void *cbdata;
    unsigned char *bytes;
    size_t size;
} making;

int credential_make(struct event_base *base, void *bytes, size_t size, credential_done_fn done, void *cbdata,
                    struct credential **out)
{
    (void)base;
    assert_null(making.done); /* one at a time */
    making = (struct credential){done, cbdata, bytes, size};
    *out = &making;
    return PMIXFAB_OK;
}

void credential_cancel(struct credential *credential)
{
    if (credential != NULL)
        free(making.bytes);
    making.done = NULL;
}

/* It answers when it can, once the node is waiting for it. */
static void let_munge_answer(void)
{
    struct credential was = making;
    char *text = NULL;
    if (was.done == NULL || munge_hangs)
        return;
    making.done = NULL;
    if (munge_status == EMUNGE_SUCCESS) {
        text = must_have(was.size * 2 + 1);
        for (size_t i = 0; i < was.size; i++)
            sprintf(text + 2 * i, "%02x", was.bytes[i]);
    }
    free(was.bytes);
    was.done(munge_status, text, was.cbdata);
    free(text);
}

static size_t decode_credential(const char *text, unsigned char **bytes)
{
    size_t size = strlen(text) / 2;
    *bytes = must_have(size + 1);
    for (size_t i = 0; i < size; i++) {
        unsigned value;
        assert_int_equal(sscanf(text + 2 * i, "%2x", &value), 1);
        (*bytes)[i] = (unsigned char)value;
    }
    return size;
}

/* ---- the relay: one delivery and one question for orders at most ------------------------------------ */

struct asked {
    loop_queue_answer_fn fn;
    void *cbdata;
    char *credential;
    uint64_t known; /* what the node believes to be held of it */
};
static struct asked delivery, orders;
static unsigned n_whole, n_changes;

int loop_queue_ask(struct loop_queue *queue, const char *op, const pmix_info_t *info, size_t n,
                   unsigned deadline_ms, loop_queue_answer_fn fn, void *cbdata)
{
    (void)queue, (void)deadline_ms;
    struct asked *asked = strcmp(op, RELAY_DELIVER) == 0 ? &delivery : &orders;
    assert_null(asked->fn); /* one at a time */
    *asked = (struct asked){.fn = fn, .cbdata = cbdata};
    if (asked == &delivery) {
        assert_int_equal(n, 1);
        assert_string_equal(info[0].key, RELAY_CREDENTIAL);
        asked->credential = strdup(info[0].value.data.string);
    } else {
        assert_int_equal(n, 2);
        assert_string_equal(info[0].value.data.string, "node1");
        asked->known = info[1].value.data.uint64;
    }
    return PMIXFAB_OK;
}

static void reply(struct asked *asked, struct loop_queue_answer *answer)
{
    struct asked was = *asked;
    *asked = (struct asked){.fn = NULL};
    was.fn(answer, was.cbdata);
    free(was.credential);
    let_munge_answer();
}

static void reply_status(struct asked *asked, pmix_status_t status)
{
    struct loop_queue_answer answer = {.status = status};
    reply(asked, &answer);
}

static void load(pmix_pdata_t *data, const char *key, pmix_data_type_t type)
{
    PMIX_PDATA_CONSTRUCT(data);
    PMIX_LOAD_KEY(data->key, key);
    data->value.type = type;
}

static void reply_delivery(int code, const char *reason, uint64_t acked)
{
    pmix_pdata_t data[3];
    load(&data[0], RELAY_CODE, PMIX_INT32);
    load(&data[1], RELAY_REASON, PMIX_STRING);
    load(&data[2], RELAY_DIGEST, PMIX_UINT64);
    data[0].value.data.int32 = code;
    data[1].value.data.string = (char *)reason;
    data[2].value.data.uint64 = acked;
    struct loop_queue_answer answer = {.status = PMIX_SUCCESS, .data = data, .n = 3};
    reply(&delivery, &answer);
}

static void reply_orders(const char *order, uint64_t acked)
{
    pmix_pdata_t data[2];
    load(&data[0], RELAY_SCAN_REQUEST, PMIX_STRING);
    load(&data[1], RELAY_DIGEST, PMIX_UINT64);
    data[0].value.data.string = (char *)order;
    data[1].value.data.uint64 = acked;
    struct loop_queue_answer answer = {.status = PMIX_SUCCESS, .data = data, .n = 2};
    reply(&orders, &answer);
}

/* ---- the file: NULL where there is none -------------------------------------------------------------- */

static struct node_state file;
static bool file_cannot; /* be written */

static void remove_file(void)
{
    fab_report_destroy(&file.report);
    file = (struct node_state){.failed = 0};
    fab_report_init(&file.report);
}

int node_state_write(const char *rundir, const struct node_state *keep, struct fab_err *err)
{
    assert_string_equal(rundir, "/run");
    assert_true(keep->report.finished);
    if (file_cannot)
        return fab_fail(err, PMIXFAB_ERR_IO, "full");
    remove_file();
    file = *keep;
    return fab_report_copy(&file.report, &keep->report);
}

int node_state_read(const char *rundir, const char *host, struct node_state *out, struct fab_err *err)
{
    (void)err;
    assert_string_equal(rundir, "/run");
    assert_string_equal(host, "node1");
    *out = file;
    fab_report_init(&out->report);
    return file.report.finished ? fab_report_copy(&out->report, &file.report) : PMIXFAB_OK;
}

/* ---- the scheduler ------------------------------------------------------------------------------ */

static struct fab_report acked;
static uint64_t held_digest;
static uint32_t held_failed; /* of that host's probes; lost with a restart */

static void forget(void)
{
    fab_report_destroy(&acked);
    held_digest = 0;
    held_failed = 0;
}

/* Take the delivery as a scheduler does; without an answer where that gets lost. */
static void take_delivery(bool answer_lost)
{
    struct fab_delivery d;
    struct fab_report report;
    struct fab_err err = {""};
    OWNED(free) unsigned char *bytes;
    size_t size = decode_credential(delivery.credential, &bytes);
    assert_int_equal(fab_delivery_decode(bytes, size, &d, &err), PMIXFAB_OK);
    assert_string_equal(d.host, "node1");
    n_whole += d.base == 0;
    n_changes += d.base != 0;
    int rc = fab_delivery_open(&d, held_digest == 0 ? NULL : &acked, &report, &err);
    if (rc == PMIXFAB_OK) {
        fab_report_destroy(&acked);
        acked = report;
        held_digest = fab_report_digest(&report);
        held_failed = d.failed;
        assert_true(held_digest == d.digest || d.unknown != 0);
    } else {
        assert_int_equal(rc, PMIXFAB_ERR_CONFLICT); /* another base: the only thing that can be wrong */
        assert_true(d.base != 0);
    }
    if (answer_lost)
        reply_status(&delivery, rand() % 2 ? PMIX_ERR_UNREACH : PMIX_ERR_TIMEOUT);
    else
        reply_delivery(rc, err.text, held_digest);
}

/* ---- the node ----------------------------------------------------------------------------------- */

static const struct config config = {.host = "node1", .rundir = "/run"};
static struct deliver *node;
static struct event_base *base;
static unsigned n_done, n_looks;
static int last_code;

static void on_done(int code, const char *reason, void *cbdata)
{
    (void)cbdata;
    assert_true((code == PMIXFAB_OK) == (reason[0] == '\0'));
    last_code = code;
    n_done++;
}

static void on_look(void *cbdata)
{
    (void)cbdata;
    n_looks++;
}

static void start_node(void)
{
    const struct deliver_calls calls = {on_done, on_look, NULL};
    memset(timers, 0, sizeof(timers));
    assert_int_equal(deliver_new(base, &config, NULL, NULL, &calls, &node), PMIXFAB_OK);
}

/* At once, with whatever is under way: nobody hears of it any more. */
static void kill_node(void)
{
    free(delivery.credential);
    delivery = orders = (struct asked){.fn = NULL};
    deliver_free(node);
}

static int open_node(void **state)
{
    n_whole = n_changes = n_done = n_looks = 0;
    munge_status = EMUNGE_SUCCESS;
    munge_hangs = file_cannot = false;
    fab_report_init(&acked);
    forget();
    *state = base = event_base_new();
    remove_file();
    start_node();
    return base == NULL;
}

static int close_node(void **state)
{
    kill_node();
    event_base_free(*state);
    forget();
    remove_file();
    return 0;
}

#define UCX (1u << FAB_FROM_UCX)

/* A host with some devices, of which one has this firmware. ucx: what that probe says; NULL: it failed. */
static void report_of(unsigned firmware, const char *ucx, bool must)
{
    uint32_t unknown, failed = ucx == NULL ? UCX : 0;
    const struct fab_report *before = deliver_current(node, &unknown);
    struct fab_report r = {0};
    assert_int_equal(fab_report_host(&r, "node1", NULL), PMIXFAB_OK);
    for (unsigned i = 0; i < 8; i++)
        report_say(&r, "verbs: name mlx5_%u, port 1, firmware 20.%u", i, i == 0 ? firmware : 0);
    if (ucx == NULL && before != NULL)
        assert_int_equal(fab_report_merge_source(&r, before, FAB_FROM_UCX), PMIXFAB_OK);
    else if (ucx != NULL && ucx[0] != '\0')
        report_say(&r, "ucx: name mlx5_0, transport %s", ucx);
    assert_int_equal(fab_report_finish(&r, NULL), PMIXFAB_OK);
    unknown = before == NULL ? failed : unknown & failed;
    deliver_report(node, &r, failed, unknown, must);
    assert_int_equal(r.n_items, 0); /* taken */
    let_munge_answer();
}

static void report(unsigned firmware, bool must)
{
    report_of(firmware, "", must);
}

static struct deliver_status status(void)
{
    struct deliver_status s;
    deliver_status(node, &s);
    return s;
}

/* Where a source is unknown to the node, the scheduler holds more than its report. */
static bool agreed(void)
{
    struct deliver_status s = status();
    uint32_t unknown;
    deliver_current(node, &unknown);
    return !s.under_way && (s.digest == held_digest || unknown != 0) && s.acked == held_digest;
}

static void take_and_agree(void)
{
    take_delivery(false);
    assert_true(agreed());
}

static void agree_in_time(void)
{
    assert_true(let_time_pass());
    take_and_agree();
}

static void deliver_first(const char *ucx)
{
    deliver_connected(node, true);
    report_of(1, ucx, false);
    take_delivery(false);
}

static void disconnect(void)
{
    deliver_connected(node, false);
    reply_status(&orders, PMIX_ERR_UNREACH);
}

FIXTURE(say_little)
{
    pmixfab_set_log(NULL, NULL);
    return 0;
}

/* ---- tests ------------------------------------------------------------------------------------------ */

TEST_WITH(test_orders, open_node, close_node)
{
    deliver_first("");
    reply_orders(RELAY_SCAN, held_digest);
    assert_int_equal(n_looks, 1);
    assert_non_null(orders.fn); /* the next question is open */
    assert_int_equal(orders.known, held_digest);
    for (int i = 0; i < 100 && orders.fn != NULL; i++)
        reply_orders("", held_digest); /* at once and without any reason */
    assert_null(orders.fn);            /* no tight loop */
    assert_true(let_time_pass());
    assert_non_null(orders.fn);
    disconnect();
    assert_true(let_time_pass());
    assert_null(orders.fn);
    deliver_connected(node, true);
    assert_non_null(orders.fn);
}

TEST_WITH(test_refused, open_node, close_node)
{
    deliver_connected(node, true);
    report(1, false);
    reply_delivery(PMIXFAB_ERR_PERM, "uid 1000 may\nnot", 0);
    assert_true(status().refused);
    assert_null(strchr(status().reason, '\n'));
    assert_int_equal(last_code, PMIXFAB_ERR_PERM);
    reply_orders("", 77); /* it holds another one: no reason to try */
    assert_null(delivery.fn);
    report(2, false); /* a change is one */
    assert_non_null(delivery.fn);
    reply_status(&delivery, PMIX_ERR_NOT_FOUND); /* an old fabricd */
    assert_true(status().refused);
    agree_in_time(); /* minutes later */
    assert_false(status().refused);
}

TEST_WITH(test_pauses_grow, open_node, close_node)
{
    int64_t sum[2] = {0, 0};
    deliver_connected(node, true);
    report(1, false);
    for (int i = 0; i < 40; i++) {
        if (i % 2 == 0)
            reply_delivery(PMIXFAB_ERR_BUSY, "busy", 0);
        else
            reply_status(&delivery, PMIX_ERR_TIMEOUT);
        int64_t pause = (timers[0].ms >= 0 ? timers[0].ms : timers[1].ms) - now;
        assert_true(pause >= 100 && pause <= 45000);
        sum[i / 20] += pause;
        assert_true(let_time_pass());
    }
    assert_true(sum[1] > sum[0]);
    munge_status = EMUNGE_SOCKET;
    reply_status(&delivery, PMIX_ERR_TIMEOUT);
    assert_true(let_time_pass());
    assert_null(delivery.fn);
    assert_non_null(strstr(status().reason, "munged"));
    munge_status = EMUNGE_SUCCESS;
    agree_in_time();
}

/* Two nodes of one name: each puts its report over the other's, ever more slowly. */
TEST_WITH(test_two_of_one_name, open_node, close_node)
{
    deliver_connected(node, true);
    report(1, false);
    const int64_t start = now;
    for (int deliveries = 0; deliveries < 20;) {
        if (delivery.fn != NULL) {
            reply_delivery(PMIXFAB_OK, "", status().digest);
            deliveries++;
            if (orders.fn != NULL && orders.known != status().digest)
                reply_orders("", status().digest);
        } else if (orders.fn != NULL && orders.known != 4711) {
            reply_orders("", 4711);
        } else {
            assert_true(let_time_pass());
        }
    }
    assert_true(now - start > 60000);
}

/* Whatever can go wrong, at random: in the end they agree. */
TEST_WITH(test_random, open_node, close_node)
{
    srand(815);
    bool connected = false;
    for (int i = 0; i < 200000; i++) {
        static const char *const ucx[] = {"", "rc", "ud", NULL};
        switch (rand() % 12) {
        case 0:
            connected = !connected;
            if (!connected && delivery.fn != NULL) /* the relay answers what was under way */
                take_delivery(true);
            if (!connected && orders.fn != NULL)
                reply_status(&orders, PMIX_ERR_UNREACH);
            deliver_connected(node, connected);
            break;
        case 1:
            report_of((unsigned)rand() % 5, ucx[rand() % 4], rand() % 4 == 0);
            break;
        case 2:
            if (rand() % 5 == 0)
                forget();
            break;
        case 3:
            if (delivery.fn != NULL)
                reply_delivery(PMIXFAB_ERR_BUSY, "busy", held_digest);
            break;
        case 4:
            if (delivery.fn != NULL)
                take_delivery(true);
            break;
        case 5:
            if (delivery.fn != NULL && rand() % 4 == 0)
                reply_delivery(PMIXFAB_ERR_PERM, "no", held_digest);
            break;
        case 6:
            if (orders.fn != NULL)
                reply_orders(rand() % 3 == 0 ? RELAY_SCAN : "", held_digest);
            break;
        case 7:
            munge_status = rand() % 3 == 0 ? EMUNGE_SOCKET : EMUNGE_SUCCESS;
            break;
        case 8:
            let_time_pass();
            break;
        case 10:
            file_cannot = rand() % 2 == 0;
            if (rand() % 3 == 0)
                munge_hangs = !munge_hangs;
            let_munge_answer();
            break;
        case 11:
            if (rand() % 4 != 0)
                break;
            if (delivery.fn != NULL && rand() % 2)
                take_delivery(true);
            kill_node();
            if (rand() % 3 == 0)
                remove_file();
            start_node();
            connected = false;
            break;
        default:
            if (delivery.fn != NULL)
                take_delivery(false);
        }
        if (i % 500 != 499 || status().digest == 0)
            continue;
        /* From here on all goes well: soon both agree. */
        munge_status = EMUNGE_SUCCESS;
        munge_hangs = false;
        let_munge_answer();
        deliver_connected(node, connected = true);
        for (int k = 0; k < 20 && !agreed(); k++) {
            if (delivery.fn != NULL)
                take_delivery(false);
            else if (orders.fn != NULL && orders.known != held_digest)
                reply_orders("", held_digest);
            else
                let_time_pass();
        }
        assert_true(agreed());
        uint32_t unknown;
        const struct fab_report *current = deliver_current(node, &unknown);
        assert_true(fab_report_equal(&acked, current) || unknown == UCX);
    }
    assert_true(n_changes > 100 && n_whole > 100);
}

TEST_GROUP(say_little, NULL)
