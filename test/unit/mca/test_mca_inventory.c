/* Inventories on their way to fabricd: the line, the answer, what waits, and the thread that delivers. */

#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "fabricd/util/base64.h"
#include "mca/pnet/inventory_line.h"
#include "mca/pnet/inventory_queue.h"
#include "mca/pnet/inventory_send.h"
#include "test/unit/report_random.h"
#include "test/unit/test.h"

static unsigned next_random(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (unsigned)((uint64_t)(*seed >> 8) * n >> 24);
}

/* ---- the line ----------------------------------------------------------------------------------- */

TEST(test_line)
{
    uint8_t bytes[400];
    unsigned seed = 1;
    for (size_t size = 1; size <= sizeof(bytes); size++) {
        char *line;
        void *back;
        size_t len, back_size;
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)next_random(&seed, 256);
        assert_int_equal(pnet_inventory_line(bytes, size, &line, &len), 0);
        assert_int_equal(strlen(line), len);
        assert_int_equal(strcspn(line, "\n"), len - 1); /* one line, ended */
        json_t *request = json_loadb(line, len, 0, NULL);
        assert_non_null(request);
        assert_int_equal(json_object_size(request), 2);
        assert_string_equal(json_string_value(json_object_get(request, "op")), "deliver");
        const char *text = json_string_value(json_object_get(request, "bytes"));
        assert_int_equal(base64_decode(text, strlen(text), &back, &back_size), 0);
        assert_int_equal(back_size, size);
        assert_memory_equal(back, bytes, size);
        free(back);
        json_decref(request);
        free(line);
    }
    char *line = (char *)"x";
    size_t len = 1;
    assert_int_equal(pnet_inventory_line(bytes, 0, &line, &len), PMIXFAB_ERR_INVAL);
    assert_null(line);
    assert_int_equal(pnet_inventory_line(NULL, 1, &line, &len), PMIXFAB_ERR_INVAL);
}

/* ---- the answer --------------------------------------------------------------------------------- */

static int answer(const char *line, struct pnet_answer *out)
{
    return pnet_inventory_answer(line, strlen(line), out);
}

TEST(test_answers)
{
    struct pnet_answer a;
    assert_int_equal(answer("{\"ok\": true, \"held\": \"0011223344556677\"}", &a), 0);
    assert_true(a.last && a.ok);
    assert_int_equal(
        answer("{\"ok\": false, \"error\": -14, \"message\": \"deliver: \\\"no\\\"\\n\\u00e4\\u0041\"}", &a),
        0);
    assert_true(a.last && !a.ok);
    assert_int_equal(a.code, -14);
    assert_string_equal(a.message, "deliver: \"no\"??A");
    assert_int_equal(answer("{\"progress\": \"sweeping\"}", &a), 0);
    assert_true(!a.last && !a.ok);
    assert_int_equal(answer("{\"ok\":false}", &a), 0);
    assert_int_equal(a.code, PMIXFAB_ERR_IO);
    assert_string_equal(a.message, "");
    assert_int_equal(answer("{\"ok\":false,\"error\":-99999999999999999999999}", &a), 0);
    assert_true(a.code < PMIXFAB_ERR_UNSUPPORTED);

    /* The word inside of something else is not it. */
    static const char *const no_answers[] = {"{}", "{\"x\":{\"ok\":true}}", "{\"x\":[{\"ok\":true}]}",
                                             "{\"okay\":true}", "{\"message\":\"\\\"ok\\\":true\"}"};
    for (size_t i = 0; i < sizeof(no_answers) / sizeof(no_answers[0]); i++) {
        assert_int_equal(answer(no_answers[i], &a), 0);
        assert_false(a.last || a.ok);
    }
    static const char *const wrong[] = {"",
                                        " ",
                                        "ok",
                                        "true",
                                        "[]",
                                        "{",
                                        "{\"ok\":true",
                                        "{\"ok\":true}}",
                                        "{\"ok\":true} x",
                                        "{\"ok\":true,}",
                                        "{\"ok\":1}",
                                        "{\"ok\":\"true\"}",
                                        "{\"ok\":trueish}",
                                        "{ok:true}",
                                        "{\"ok\" true}",
                                        "{\"error\":\"-1\",\"ok\":false}",
                                        "{\"message\":1,\"ok\":false}",
                                        "{\"ok\":true,\"x\":\"a\tb\"}",
                                        "{\"ok\":true,\"x\":\"a}",
                                        "{\"ok\":true,\"x\":\"\\q\"}",
                                        "{\"ok\":true,\"x\":\"\\u12g4\"}",
                                        "{\"ok\":true,\"x\":[1,2}",
                                        "{\"ok\":true,\"x\":01}",
                                        "{\"ok\":true,\"x\":1.}",
                                        "{\"ok\":true,\"x\":-}"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (answer(wrong[i], &a) != PMIXFAB_ERR_SYNTAX)
            fail_msg("%s was understood", wrong[i]);
        assert_false(a.last || a.ok);
    }
    assert_int_equal(pnet_inventory_answer("{\"ok\":true\0}", 12, &a), PMIXFAB_ERR_SYNTAX);

    char deep[200] = "{\"x\":"; /* what nests deeper than anybody needs */
    memset(deep + 5, '[', 100);
    assert_int_equal(answer(deep, &a), PMIXFAB_ERR_SYNTAX);
}

/* What a reader of JSON makes of it: 0 with *out, or PMIXFAB_ERR_SYNTAX; 1: not to be compared. */
static int plain_answer(const char *line, size_t len, struct pnet_answer *out)
{
    json_t *object = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
    *out = (struct pnet_answer){.code = PMIXFAB_ERR_IO};
    if (object == NULL) {
        object = json_loadb(line, len, 0, NULL);
        int rc = object == NULL ? PMIXFAB_ERR_SYNTAX : 1; /* which of two counts is not laid down */
        json_decref(object);
        return rc;
    }
    const json_t *ok = json_object_get(object, "ok"), *error = json_object_get(object, "error"),
                 *message = json_object_get(object, "message");
    bool good = json_is_object(object) && (ok == NULL || json_is_boolean(ok)) &&
                (error == NULL || json_is_number(error)) && (message == NULL || json_is_string(message));
    out->last = good && ok != NULL;
    out->ok = good && json_is_true(ok);
    if (good && error != NULL)
        out->code = (int)json_number_value(error);
    if (good && message != NULL)
        snprintf(out->message, sizeof(out->message), "%s", json_string_value(message));
    bool exponent = good && json_is_real(error);
    json_decref(object);
    return exponent ? 1 : good ? 0 : PMIXFAB_ERR_SYNTAX;
}

/* Texts that are nearly answers: what is understood, and what it says, is the same as by the JSON library. */
TEST(test_answers_compared)
{
    static const char *const pieces[] = {"{",        "}",      "[",     "]",     ":",         ",",
                                         "\"ok\"",   "true",   "false", "null",  "\"error\"", "-7",
                                         "0",        "12.5e1", " ",     "\"x\"", "\"a\\\\\"", "\"message\"",
                                         "\"m\\/\"", "1e",     "tru",   "-",     "\"\\\"\"",  "00",
                                         "\"",       "\\",     ".5",    "+1"};
    static const char *const starts[] = {"{\"ok\":true",
                                         "{\"ok\":false,\"error\":-5,\"message\":\"no\"",
                                         "{\"progress\":\"x\"",
                                         "{",
                                         "{\"x\":[",
                                         "{\"x\":{\"y\":",
                                         ""};
    const unsigned n_pieces = sizeof(pieces) / sizeof(pieces[0]),
                   n_starts = sizeof(starts) / sizeof(starts[0]);
    unsigned seed = 7, understood = 0, compared = 0;
    for (int round = 0; round < 200000; round++) {
        char text[512];
        struct pnet_answer ours, plain;
        strcpy(text, starts[next_random(&seed, n_starts)]);
        for (unsigned n = next_random(&seed, 7); n > 0; n--)
            strcat(text, pieces[next_random(&seed, n_pieces)]);
        if (next_random(&seed, 2) != 0)
            strcat(text, "}");
        size_t len = strlen(text);
        int want = plain_answer(text, len, &plain);
        if (want == 1)
            continue;
        compared++;
        if (pnet_inventory_answer(text, len, &ours) != want)
            fail_msg("%s: expected %d", text, want);
        if (want != 0)
            continue;
        understood++;
        assert_int_equal(ours.last, plain.last);
        assert_int_equal(ours.ok, plain.ok);
        assert_int_equal(ours.code, plain.code);
        assert_string_equal(ours.message, plain.message);
    }
    assert_true(understood > 2000 && compared - understood > 2000);
}

/* ---- the queue ---------------------------------------------------------------------------------- */

#define MODEL_HOSTS 12

/* Random adding, taking and giving back, against a list that is searched from its beginning. */
TEST(test_queue_compared)
{
    struct {
        char host[8], text[16];
    } model[MODEL_HOSTS] = {{"", ""}};
    unsigned n = 0, seed = 3, full = 0;
    struct pnet_queue queue = {.max_hosts = 8, .max_bytes = 60};
    for (int round = 0; round < 100000; round++) {
        char host[8], text[16];
        size_t bytes = 0, at = 0;
        for (unsigned i = 0; i < n; i++)
            bytes += strlen(model[i].text);
        assert_int_equal(queue.bytes, bytes);
        assert_int_equal(pnet_queue_count(&queue), n);
        snprintf(host, sizeof(host), "n%u", next_random(&seed, MODEL_HOSTS));
        snprintf(text, sizeof(text), "%.*s", (int)next_random(&seed, 14), "abcdefghijklmno");
        while (at < n && strcmp(model[at].host, host) != 0)
            at++;
        switch (next_random(&seed, 4)) {
        case 0: { /* take the first, and perhaps give it back when another of its host has come */
            struct pnet_waiting *taken = pnet_queue_take(&queue);
            assert_int_equal(taken != NULL, n > 0);
            if (taken == NULL)
                break;
            assert_string_equal(taken->host, model[0].host);
            assert_int_equal(taken->size, strlen(model[0].text));
            assert_memory_equal(taken->bytes, model[0].text, taken->size);
            memmove(&model[0], &model[1], (n - 1) * sizeof(model[0]));
            n--;
            if (next_random(&seed, 2) == 0) {
                pnet_waiting_free(taken);
                break;
            }
            bool newer = bytes - taken->size + 3 <= 60 && next_random(&seed, 2) == 0;
            memcpy(host, taken->host, sizeof(host));
            memcpy(text, taken->bytes, taken->size);
            text[taken->size] = '\0';
            if (newer)
                assert_int_equal(pnet_queue_add(&queue, host, "new", 3), 0);
            pnet_queue_return(&queue, taken);
            strcpy(model[n].host, host);
            strcpy(model[n++].text, newer ? "new" : text);
            break;
        }
        default: {
            size_t before = at < n ? strlen(model[at].text) : 0;
            bool fits = bytes - before + strlen(text) <= 60 && (at < n || n < 8);
            full += !fits;
            assert_int_equal(pnet_queue_add(&queue, host, text, strlen(text)), fits ? 0 : PMIXFAB_ERR_RANGE);
            if (!fits)
                break;
            if (at == n)
                strcpy(model[n++].host, host);
            strcpy(model[at].text, text);
        }
        }
    }
    assert_true(full > 100);
    pnet_queue_clear(&queue);
    assert_int_equal(queue.bytes, 0);
    assert_int_equal(pnet_queue_count(&queue), 0);
}

/* ---- the thread --------------------------------------------------------------------------------- */

/* In the place of fabricd: a socket that the test answers by hand. */
struct place {
    char dir[64];
    int listener, caller;
    struct pnet_sender *sender;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void open_shop(struct place *p)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", p->dir);
    unlink(address.sun_path);
    p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(p->listener, 5), 0);
}

static void hang_up(struct place *p)
{
    if (p->caller >= 0)
        close(p->caller);
    p->caller = -1;
}

static void close_shop(struct place *p)
{
    hang_up(p);
    close(p->listener);
    p->listener = -1;
}

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    struct fab_err err = {""};
    strcpy(p->dir, "/tmp/pmixfab-send-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    p->listener = p->caller = -1;
    assert_int_equal(pnet_sender_start(p->dir, &p->sender, &err), 0);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    char command[128];
    int64_t start = now_ms();
    pnet_sender_stop(p->sender);
    assert_true(now_ms() - start < 1500);
    if (p->listener >= 0)
        close_shop(p);
    snprintf(command, sizeof(command), "rm -rf '%s'", p->dir);
    int rc = system(command);
    free(p);
    return rc;
}

/* The whole report of a host; `n`: which of its reports. */
static void *delivery_of(const char *host, unsigned n, uint64_t base, size_t *size)
{
    struct fab_report report;
    struct fab_delivery delivery = {.base = base};
    void *body, *bytes;
    uint32_t item;
    fab_report_init(&report);
    assert_int_equal(fab_report_host(&report, host, NULL), 0);
    assert_int_equal(fab_report_item(&report, FAB_FROM_ETHERNET, &item), 0);
    assert_int_equal(fab_report_printf(&report, item, FAB_FACT_INTERFACE, "eth%u", n), 0);
    assert_int_equal(fab_report_finish(&report, NULL), 0);
    strcpy(delivery.host, host);
    delivery.digest = fab_report_digest(&report);
    assert_int_equal(fab_report_encode(&report, &body, &delivery.size), 0);
    delivery.body = body;
    assert_int_equal(fab_delivery_encode(&delivery, &bytes, size), 0);
    free(body);
    fab_report_destroy(&report);
    return bytes;
}

static void add(struct place *p, const char *host, unsigned n)
{
    size_t size;
    struct fab_err err = {""};
    void *bytes = delivery_of(host, n, 0, &size);
    assert_int_equal(pnet_sender_add(p->sender, bytes, size, &err), 0);
    free(bytes);
}

static void wait_readable(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&one, 1, 20000), 1);
}

/* The next request, which is this one. */
static void expect_request(struct place *p, const char *host, unsigned n)
{
    char line[4096] = "", *wanted;
    size_t have = 0, size, len;
    void *bytes = delivery_of(host, n, 0, &size);
    assert_int_equal(pnet_inventory_line(bytes, size, &wanted, &len), 0);
    while (have == 0 || line[have - 1] != '\n') {
        if (p->caller < 0) {
            wait_readable(p->listener);
            p->caller = accept(p->listener, NULL, NULL);
            assert_true(p->caller >= 0);
        }
        wait_readable(p->caller);
        ssize_t got = recv(p->caller, line + have, sizeof(line) - have, 0);
        if (got == 0 && have == 0) { /* it hung up as nothing waited */
            hang_up(p);
            continue;
        }
        assert_true(got > 0);
        have += (size_t)got;
    }
    assert_int_equal(have, len);
    assert_memory_equal(line, wanted, len);
    free(wanted);
    free(bytes);
}

static void say(struct place *p, const char *text)
{
    assert_int_equal(send(p->caller, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void expect_counts(struct place *p, uint64_t delivered, uint64_t refused, size_t waiting)
{
    struct pnet_sender_counts c;
    int64_t end = now_ms() + 20000;
    do {
        pnet_sender_counts(p->sender, &c);
        if (c.delivered == delivered && c.refused == refused && c.waiting == waiting)
            return;
        usleep(1000);
    } while (now_ms() < end);
    fail_msg("delivered %lu refused %lu waiting %zu", (unsigned long)c.delivered, (unsigned long)c.refused,
             c.waiting);
}

static void wait_attempts(struct place *p, uint64_t n)
{
    struct pnet_sender_counts c;
    int64_t end = now_ms() + 20000;
    do {
        pnet_sender_counts(p->sender, &c);
        usleep(1000);
    } while (c.attempts < n && now_ms() < end);
    assert_true(c.attempts >= n);
}

TEST_WITH(test_taken_and_refused, setup, teardown)
{
    struct place *p = *state;
    open_shop(p);
    add(p, "node1", 1);
    expect_request(p, "node1", 1);
    add(p, "node2", 1);
    add(p, "node3", 1);
    say(p, "{\"progress\":\"storing\"}\n{\"ok\":true,");
    say(p, "\"held\":null}\n");
    expect_request(p, "node2", 1);
    say(p, "{\"ok\":false,\"error\":-14,\"message\":\"deliver: uid 7 may not do that\"}\n");
    expect_request(p, "node3", 1);
    say(p, "{\"ok\":true}\n");
    expect_counts(p, 2, 1, 0);
    add(p, "node1", 2); /* after a pause of nothing */
    expect_request(p, "node1", 2);
    say(p, "{\"ok\":true}\n");
    expect_counts(p, 3, 1, 0);
}

TEST_WITH(test_away_and_back, setup, teardown)
{
    struct place *p = *state;
    add(p, "node1", 1);
    add(p, "node2", 1);
    wait_attempts(p, 2);
    add(p, "node1", 2);
    add(p, "node1", 3);
    add(p, "node2", 2);
    open_shop(p);
    bool seen[3] = {false};
    for (int i = 0; i < 2; i++) { /* each once, the newest, in whatever order */
        struct pollfd fd = {.fd = p->caller >= 0 ? p->caller : p->listener, .events = POLLIN};
        assert_int_equal(poll(&fd, 1, 20000), 1);
        if (p->caller < 0)
            p->caller = accept(p->listener, NULL, NULL);
        char line[4096], *wanted;
        size_t len, size;
        wait_readable(p->caller);
        ssize_t got = recv(p->caller, line, sizeof(line), 0);
        for (unsigned host = 1; host <= 2; host++) {
            char name[8];
            snprintf(name, sizeof(name), "node%u", host);
            void *bytes = delivery_of(name, host == 1 ? 3 : 2, 0, &size);
            assert_int_equal(pnet_inventory_line(bytes, size, &wanted, &len), 0);
            seen[host] |= (size_t)got == len && memcmp(line, wanted, len) == 0;
            free(wanted);
            free(bytes);
        }
        say(p, "{\"ok\":true}\n");
    }
    assert_true(seen[1] && seen[2]);
    expect_counts(p, 2, 0, 0);
}

/* A newer one while the older is under way, which then fails: only the newer is left. */
TEST_WITH(test_newer_while_under_way, setup, teardown)
{
    struct place *p = *state;
    open_shop(p);
    add(p, "node1", 1);
    expect_request(p, "node1", 1);
    add(p, "node1", 2);
    say(p, "{\"ok\":false,\"error\":-13,\"message\":\"not now\"}\n"); /* BUSY: a moment later */
    expect_request(p, "node1", 2);
    say(p, "{\"ok\":true}\n");
    expect_counts(p, 1, 0, 0);
}

TEST_WITH(test_strange_answers, setup, teardown)
{
    struct place *p = *state;
    static char endless[PNET_ANSWER_MAX + 1];
    memset(endless, 'x', sizeof(endless) - 1);
    const char *const answers[] = {"", "garbage\n", "{\"ok\":tr", endless};
    open_shop(p);
    add(p, "node1", 1);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        expect_request(p, "node1", 1);
        (void)!send(p->caller, answers[i], strlen(answers[i]), MSG_NOSIGNAL);
        hang_up(p);
    }
    expect_request(p, "node1", 1);
    say(p, "{\"ok\":true}\n");
    expect_counts(p, 1, 0, 0);
}

TEST_WITH(test_not_an_inventory, setup, teardown)
{
    struct place *p = *state;
    struct fab_err err = {""};
    size_t size;
    uint8_t *bytes = delivery_of("node1", 1, 0, &size);
    for (size_t n = 0; n < size; n++) {
        uint8_t *part = malloc(n + 1); /* so that reading behind it is seen */
        memcpy(part, bytes, n);
        assert_int_not_equal(pnet_sender_add(p->sender, part, n, &err), 0);
        free(part);
    }
    for (size_t n = 0; n < size; n++) {
        bytes[n] ^= 0x40;
        assert_int_not_equal(pnet_sender_add(p->sender, bytes, size, &err), 0);
        assert_true(err.text[0] != '\0');
        bytes[n] ^= 0x40;
    }
    free(bytes);
    bytes = delivery_of("node1", 1, 77, &size); /* a change */
    assert_int_equal(pnet_sender_add(p->sender, bytes, size, &err), PMIXFAB_ERR_CONFLICT);
    free(bytes);
    expect_counts(p, 0, 0, 0);
}

/* It does not wait for an answer that does not come, and delivers what it still can. */
TEST_WITH(test_stop_while_it_waits, setup, teardown)
{
    struct place *p = *state;
    open_shop(p);
    add(p, "node1", 1);
    expect_request(p, "node1", 1);
} /* and teardown */

static void *answer_all(void *arg)
{
    struct place *p = arg;
    for (unsigned i = 0; i < 20; i++) {
        char name[8];
        snprintf(name, sizeof(name), "n%u", i);
        expect_request(p, name, 1);
        say(p, "{\"ok\":true}\n");
    }
    return NULL;
}

TEST_WITH(test_stop_delivers_what_waits, setup, teardown)
{
    struct place *p = *state;
    pthread_t fabricd;
    open_shop(p);
    for (unsigned i = 0; i < 20; i++) {
        char name[8];
        snprintf(name, sizeof(name), "n%u", i);
        add(p, name, 1);
    }
    assert_int_equal(pthread_create(&fabricd, NULL, answer_all, p), 0);
    pnet_sender_stop(p->sender);
    p->sender = NULL;
    assert_int_equal(pthread_join(fabricd, NULL), 0); /* they all came */
}

TEST(test_start_refused)
{
    struct pnet_sender *sender;
    struct fab_err err = {""};
    char path[200];
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(pnet_sender_start(path, &sender, &err), PMIXFAB_ERR_INVAL);
    assert_null(sender);
    pnet_sender_stop(NULL);
}
