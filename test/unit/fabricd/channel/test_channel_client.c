/* A node's end of the nodes' channel against a scheduler that is right, or lies. munge is played, the
 * connections are real, and the scheduler is a listening socket of this test. */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/channel_peer.h"
#include "test/unit/channel_world.h"

static struct config config;
static struct channel_client *client;

/* ---- what the node hears ---- */

static struct {
    unsigned connected, lost, failed, replied;
    int code, reply_code;
    char reason[512], reply_reason[512], body[64];
    bool away;
} heard;

static void on_connected(bool connected, void *cbdata)
{
    (void)cbdata;
    heard.connected += connected;
    heard.lost += !connected;
}

static void on_failed(int code, const char *reason, void *cbdata)
{
    (void)cbdata;
    heard.failed++;
    heard.code = code;
    snprintf(heard.reason, sizeof(heard.reason), "%s", reason);
}

static void on_reply(struct channel_reply *reply, void *cbdata)
{
    (void)cbdata;
    heard.replied++;
    heard.reply_code = reply->code;
    heard.away = reply->away;
    snprintf(heard.reply_reason, sizeof(heard.reply_reason), "%s", reply->reason);
    snprintf(heard.body, sizeof(heard.body), "%.*s", (int)reply->size,
             reply->body == NULL ? "" : (char *)reply->body);
}

static void ask(unsigned deadline)
{
    char *body = must_have(8);
    memcpy(body, "question", 8);
    must_do(channel_client_ask(client, CHANNEL_DELIVER, body, 8, 32, deadline, on_reply, NULL));
}

/* ---- a scheduler ---- */

static struct {
    int listener, fd;
    struct evbuffer *in;
    struct channel_seal nonces;
} head = {.listener = -1, .fd = -1};

static int listen_somewhere(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(at);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static void hang_up(void)
{
    if (head.fd >= 0)
        close(head.fd);
    head.fd = -1;
}

static int allow_all(const struct channel_head *frame, void *cbdata, struct fab_err *err)
{
    (void)frame, (void)cbdata, (void)err;
    return PMIXFAB_OK;
}

static struct channel_frame read_frame(void)
{
    struct channel_frame frame = {.begun = false};
    char bytes[4096];
    while (channel_take(&frame, head.in, allow_all, NULL, fresh_err()) != PMIXFAB_OK) {
        const ssize_t n = recv(head.fd, bytes, sizeof(bytes), 0);
        if (n > 0)
            evbuffer_add(head.in, bytes, (size_t)n);
        else
            world_turn();
    }
    return frame;
}

/* Its credential has this payload; in the frame stand others, where they are given. */
static void answer(uint8_t type, uint32_t number, const char *sealed, const char *body,
                   const struct channel_seal *other)
{
    struct channel_seal seal = other == NULL ? head.nonces : *other;
    uint8_t digest[CHANNEL_DIGEST], bytes[CHANNEL_SEAL];
    struct evbuffer *out = evbuffer_new();
    if (other == NULL) {
        seal.type = type;
        seal.request = number;
    }
    channel_digest(sealed, strlen(sealed), digest);
    channel_seal_put(&seal, digest, bytes);
    OWNED(free) char *credential = world_credential(bytes, sizeof(bytes));
    const struct channel_head frame = {CHANNEL_VERSION, type, number, (uint32_t)strlen(credential),
                                       (uint32_t)strlen(body)};
    assert_int_equal(channel_put(out, &frame, credential, body), PMIXFAB_OK);
    while (evbuffer_get_length(out) > 0 && evbuffer_write(out, head.fd) > 0)
        ;
    evbuffer_free(out);
}

static uint32_t accept_node(void)
{
    struct channel_hello hello;
    hang_up();
    evbuffer_drain(head.in, SIZE_MAX);
    TURN_UNTIL((head.fd = accept4(head.listener, NULL, NULL, SOCK_NONBLOCK)) >= 0);
    struct channel_frame frame = read_frame();
    assert_int_equal(frame.head.type, CHANNEL_HELLO);
    assert_int_equal(channel_get_hello(frame.body, frame.head.body, &hello), PMIXFAB_OK);
    assert_string_equal(hello.host, "node7");
    const uint32_t number = frame.head.request;
    channel_frame_clear(&frame);
    head.nonces = (struct channel_seal){.scheduler = "the scheduler's"};
    memcpy(head.nonces.node, hello.nonce, CHANNEL_NONCE);
    return number;
}

#define WELCOME "the scheduler's" /* with its 0, a nonce */

static void send_welcome(uint32_t number, const char *nonce)
{
    struct channel_seal seal = head.nonces;
    uint8_t digest[CHANNEL_DIGEST], bytes[CHANNEL_SEAL];
    struct evbuffer *out = evbuffer_new();
    seal.type = CHANNEL_WELCOME;
    seal.request = number;
    channel_digest(WELCOME, CHANNEL_NONCE, digest);
    channel_seal_put(&seal, digest, bytes);
    OWNED(free) char *credential = world_credential(bytes, sizeof(bytes));
    const struct channel_head frame = {CHANNEL_VERSION, CHANNEL_WELCOME, number, (uint32_t)strlen(credential),
                                       CHANNEL_NONCE};
    assert_int_equal(channel_put(out, &frame, credential, nonce), PMIXFAB_OK);
    assert_true(evbuffer_write(out, head.fd) > 0);
    evbuffer_free(out);
}

static void greet(void)
{
    const unsigned before = heard.connected;
    send_welcome(accept_node(), WELCOME);
    TURN_UNTIL(heard.connected == before + 1);
}

/* The number of the request that came. */
static uint32_t question(void)
{
    struct channel_frame frame = read_frame();
    assert_int_equal(frame.head.type, CHANNEL_DELIVER);
    const uint32_t number = frame.head.request;
    channel_frame_clear(&frame);
    return number;
}

static int begin(void **state)
{
    const struct channel_client_calls calls = {on_connected, on_failed, NULL};
    uint16_t port;
    (void)state;
    world_begin();
    memset(&heard, 0, sizeof(heard));
    head.in = evbuffer_new();
    head.listener = listen_somewhere(&port);
    config_init(&config);
    config_text(&config.host, "node7");
    config_text(&config.scheduler_user, "4711");
    config_text(&config.scheduler, printed("127.0.0.1:1, 127.0.0.1:%u", port)); /* nobody is at the first */
    must_do(channel_client_new(world.base, &config, &calls, &client, fresh_err()));
    channel_client_start(client);
    return 0;
}

static int end(void **state)
{
    (void)state;
    channel_client_free(client);
    hang_up();
    close(head.listener);
    evbuffer_free(head.in);
    config_destroy(&config);
    world_end();
    return 0;
}

#define CLIENT_TEST(name) TEST_WITH(name, begin, end)

CLIENT_TEST(test_asked_and_answered)
{
    ask(10000); /* waits for the connection */
    greet();
    assert_int_equal(heard.failed, 1);
    assert_non_null(strstr(heard.reason, "scheduler 127.0.0.1 port 1: Connection refused"));
    const uint32_t first = question();
    ask(10000);
    const uint32_t second = question();
    answer(CHANNEL_ACCEPTED, second, "second", "second", NULL);
    TURN_UNTIL(heard.replied == 1);
    assert_string_equal(heard.body, "second");
    answer(CHANNEL_ACCEPTED, first, "first", "first", NULL);
    TURN_UNTIL(heard.replied == 2);
    assert_string_equal(heard.body, "first");
    answer(CHANNEL_ACCEPTED, first, "first", "first", NULL); /* again: of no open request */
    ask(10000);
    world.uid = 4711; /* as [node] scheduler_user says */
    answer(CHANNEL_ACCEPTED, question(), "third", "third", NULL);
    TURN_UNTIL(heard.replied == 3);
    assert_int_equal(heard.reply_code, PMIXFAB_OK);
    hang_up();
    TURN_UNTIL(heard.lost == 1);
    greet();
    assert_int_equal(heard.connected, 2);
}

CLIENT_TEST(test_lost_and_late)
{
    ask(50);
    TURN_UNTIL(heard.replied == 1); /* nobody has answered yet */
    assert_int_equal(heard.reply_code, PMIXFAB_ERR_UNREACH);
    assert_true(heard.away);
    greet();
    ask(50);
    question();
    TURN_UNTIL(heard.replied == 2);
    assert_int_equal(heard.reply_code, PMIXFAB_ERR_TIMEOUT);
    ask(10000);
    question();
    hang_up();
    TURN_UNTIL(heard.replied == 3);
    assert_int_equal(heard.reply_code, PMIXFAB_ERR_UNREACH);
    assert_int_equal(heard.lost, 1);
}

CLIENT_TEST(test_refused)
{
    struct channel_outcome outcome = {.code = PMIXFAB_ERR_PERM, .reason = "uid 5 may\nnot"};
    uint8_t body[CHANNEL_MAX_WORDS];
    struct channel_head frame = {.version = 9, .type = CHANNEL_REFUSED}; /* of whatever version */
    struct evbuffer *out = evbuffer_new();
    accept_node();
    frame.body = (uint32_t)channel_put_outcome(&outcome, body);
    assert_int_equal(channel_put(out, &frame, "", body), PMIXFAB_OK);
    assert_true(evbuffer_write(out, head.fd) > 0);
    TURN_UNTIL(heard.failed == 2);
    assert_int_equal(heard.code, PMIXFAB_ERR_PERM);
    assert_non_null(strstr(heard.reason, ": uid 5 may?not"));
    greet();
    ask(10000);
    frame.request = question();
    assert_int_equal(channel_put(out, &frame, "", body), PMIXFAB_OK);
    assert_true(evbuffer_write(out, head.fd) > 0);
    TURN_UNTIL(heard.replied == 1);
    assert_true(heard.reply_code == PMIXFAB_ERR_PERM && !heard.away);
    assert_int_equal(heard.lost, 0);
    evbuffer_free(out);
}

/* Each lie ends the connection, and is no answer. */
CLIENT_TEST(test_lies)
{
    static const char *const why[] = {
        "uid 1000 on 10.0.0.7 answers, which is neither root nor the scheduler's user",
        "seals other content",
        "seals another message, or one of another connection",
        "seals another message, or one of another connection",
        "its answer does not match the request",
        "it sends an answer without a request",
        "at most 32 are accepted",
        "it speaks another protocol",
        "uid 0 on 10.0.0.7 was used before",
    };
    const char *large = "more than the thirty-two bytes that were expected";
    for (unsigned i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
        world.uid = 0;
        greet();
        ask(10000);
        const uint32_t number = question();
        struct channel_seal seal = head.nonces;
        seal.type = CHANNEL_ACCEPTED;
        seal.request = number;
        seal.node[0] ^= i == 2;
        seal.request += i == 3;
        world.uid = i == 0 ? 1000 : 0;
        if (i == 1)
            answer(CHANNEL_ACCEPTED, number, "sealed", "another", NULL);
        else if (i == 4)
            answer(CHANNEL_NEWS, number, "x", "x", NULL);
        else if (i == 5)
            answer(CHANNEL_ACCEPTED, number + 7, "x", "x", NULL);
        else if (i == 6)
            answer(CHANNEL_ACCEPTED, number, large, large, NULL);
        else if (i == 7)
            assert_true(send(head.fd, "HTTP/1.1 200 OK\r\n", 17, MSG_NOSIGNAL) > 0);
        if (i == 8) { /* a credential that was opened before */
            uint8_t digest[CHANNEL_DIGEST], bytes[CHANNEL_SEAL];
            struct evbuffer *out = evbuffer_new();
            channel_digest("x", 1, digest);
            channel_seal_put(&seal, digest, bytes);
            OWNED(free) char *credential = world_credential(bytes, sizeof(bytes));
            world_was_opened(credential);
            const struct channel_head frame = {CHANNEL_VERSION, CHANNEL_ACCEPTED, number,
                                               (uint32_t)strlen(credential), 1};
            assert_int_equal(channel_put(out, &frame, credential, "x"), PMIXFAB_OK);
            assert_true(evbuffer_write(out, head.fd) > 0);
            evbuffer_free(out);
        } else if (i == 0 || i == 2 || i == 3) {
            answer(CHANNEL_ACCEPTED, number, "x", "x", &seal);
        }
        TURN_UNTIL(heard.lost == i + 1);
        TURN_UNTIL(heard.replied == i + 1);
        assert_int_equal(heard.reply_code, PMIXFAB_ERR_UNREACH);
        if (strstr(heard.reason, why[i]) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", heard.reason, why[i]);
    }
}

/* Whoever takes the scheduler's port. */
CLIENT_TEST(test_a_strangers_welcome)
{
    world.uid = 0;
    uint32_t number = accept_node();
    world.uid = 1000;
    send_welcome(number, WELCOME);
    TURN_UNTIL(strstr(heard.reason, "uid 1000") != NULL);
    world.uid = 0;
    number = accept_node();
    send_welcome(number, "another's nonce");
    TURN_UNTIL(strstr(heard.reason, "seals another") != NULL);
    accept_node();
    answer(CHANNEL_ACCEPTED, 1, "x", "x", NULL);
    TURN_UNTIL(strstr(heard.reason, "sends no credential") != NULL);
    assert_int_equal(heard.connected, 0);
    greet();
}

/* Its own munged is away: nothing is sent, and it is said. */
CLIENT_TEST(test_no_munged)
{
    greet();
    world.away = true;
    ask(10000);
    TURN_UNTIL(heard.replied == 1);
    assert_int_equal(heard.reply_code, PMIXFAB_ERR_IO);
    assert_non_null(strstr(heard.reply_reason, "munge made no credential"));
    world.away = false;
}
