/* The scheduler's end of the nodes' channel: nodes that are right, and messages that are forged, replayed,
 * cut or too many. munge is played, the connections are real. */
#include "fabricd/base/log.h"
#include "fabricd/channel/channel_priv.h"
#include "test/channel_peer.h"
#include "test/unit/channel_world.h"
#include "test/unit/served_small.h"
#include "topo/model/delivery.h"

static struct config config;
static struct credential_worker *worker;
static struct channel_server *server;
static struct served *served;

static struct {
    uint64_t held;
    unsigned delivered;
    bool keeps; /* the next one is not answered at once */
    struct channel_request *kept[16];
    unsigned n_kept;
    struct credential_maker maker;
    char bytes[64];
} intake;

static uint64_t on_held(const char *host, void *cbdata)
{
    (void)cbdata;
    return strcmp(host, "node7") == 0 ? intake.held : 0;
}

static void on_deliver(const struct credential_maker *maker, void *bytes, size_t size,
                       struct channel_request *request, void *cbdata)
{
    (void)cbdata;
    intake.delivered++;
    intake.maker = *maker;
    snprintf(intake.bytes, sizeof(intake.bytes), "%.*s", (int)size, (char *)bytes);
    free(bytes);
    if (intake.keeps)
        intake.kept[intake.n_kept++] = request;
    else
        channel_answer(request, PMIXFAB_OK, 4711, "");
}

static int open_server(void **state)
{
    const struct channel_server_calls calls = {on_held, on_deliver, NULL};
    (void)state;
    world_begin();
    pmixfab_set_log(NULL, NULL);
    config_init(&config);
    config_text(&config.nodes_listen, "127.0.0.1");
    config.nodes_port = 0;
    memset(&intake, 0, sizeof(intake));
    intake.held = 11;
    worker = credential_worker_new(world.base);
    server = channel_server_new(world.base, worker);
    served = served_new();
    assert_true(worker != NULL && server != NULL && served != NULL && small_serve(served));
    must_do(channel_server_start(server, &calls, &config, served, NULL, fresh_err()));
    return 0;
}

static int close_server(void **state)
{
    (void)state;
    channel_server_free(server);
    credential_worker_free(worker);
    served_free(served);
    config_destroy(&config);
    world_end();
    return 0;
}

#define SERVER_TEST(name) TEST_WITH(name, open_server, close_server)

static struct channel_server_status status(void)
{
    struct channel_server_status s;
    channel_server_status(server, &s);
    return s;
}

/* ---- a node ---- */

static char *peer_encode(const uint8_t seal[CHANNEL_SEAL], void *cbdata)
{
    (void)cbdata;
    return world_credential(seal, CHANNEL_SEAL);
}

static struct channel_peer connected(void)
{
    struct channel_peer peer = {.encode = peer_encode, .idle = world_idle};
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(status().port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    assert_true(channel_peer_open(&peer, (const struct sockaddr *)&to, sizeof(to)));
    return peer;
}

static struct channel_peer node(const char *host)
{
    struct channel_peer peer = connected();
    struct channel_outcome why;
    if (!channel_peer_hello(&peer, host, &why))
        fail_msg("refused: %d %s", why.code, why.reason);
    return peer;
}

static struct channel_outcome outcome_of(struct channel_peer *peer)
{
    struct channel_outcome out;
    assert_true(channel_peer_outcome(peer, &out));
    return out;
}

static void must_outcome(struct channel_peer *peer, int code, const char *part)
{
    const struct channel_outcome out = outcome_of(peer);
    if (out.code != code || strstr(out.reason, part) == NULL)
        fail_msg("%d, not %d: \"%s\" does not say \"%s\"", out.code, code, out.reason, part);
}

static void deliver(struct channel_peer *peer)
{
    channel_peer_ask(peer, CHANNEL_DELIVER, "a report", 8);
}

static void must_close(struct channel_peer *peer)
{
    struct channel_frame frame;
    while (channel_peer_read(peer, &frame))
        channel_frame_clear(&frame);
    assert_int_equal(peer->fd, -1);
}

static void ask_news(struct channel_peer *peer, uint64_t held, bool at_once)
{
    const struct channel_wait wait = {
        .held = held, .generation = 7, .published = 1700000000123456, .at_once = at_once};
    uint8_t body[CHANNEL_MAX_WORDS];
    channel_peer_ask(peer, CHANNEL_WAIT, body, channel_put_wait(&wait, body));
}

static struct channel_news news_of(struct channel_peer *peer)
{
    struct channel_frame frame;
    struct channel_news news;
    assert_true(channel_peer_read(peer, &frame));
    assert_int_equal(frame.head.type, CHANNEL_NEWS);
    assert_int_equal(channel_get_news(frame.body, frame.head.body, &news), PMIXFAB_OK);
    channel_frame_clear(&frame);
    free(news.planes);
    return news;
}

SERVER_TEST(test_what_a_node_does)
{
    struct channel_peer peer = node("node7");
    assert_int_equal(status().connected, 1);
    deliver(&peer);
    const struct channel_outcome out = outcome_of(&peer);
    assert_true(out.code == PMIXFAB_OK && out.held == 4711);
    assert_string_equal(intake.bytes, "a report");
    assert_string_equal(credential_address_text(intake.maker.origin).text, "10.0.0.7");

    ask_news(&peer, 11, true);
    struct channel_news news = news_of(&peer);
    assert_true(news.held == 11 && news.generation == 7 && news.n == 2 && !news.scan && !news.stale);
    ask_news(&peer, 12, false); /* it knows something else */
    assert_int_equal(news_of(&peer).held, 11);
    ask_news(&peer, 11, false);
    for (unsigned i = 0; i < 20; i++)
        world_turn();
    channel_server_scan(server, "node8");
    channel_server_held(server, "node8");
    channel_server_scan(server, "node7");
    assert_true(news_of(&peer).scan);
    channel_server_scan(server, NULL);
    ask_news(&peer, 11, false); /* between two questions: the next one is it */
    assert_true(news_of(&peer).scan);
    ask_news(&peer, 11, false);
    for (unsigned i = 0; i < 20; i++)
        world_turn();
    served_set_stale(served, true);
    channel_server_tell(server);
    assert_true(news_of(&peer).stale);
    channel_peer_close(&peer);
    TURN_UNTIL(status().connected == 0);
}

SERVER_TEST(test_snapshots)
{
    struct channel_peer peer = node("node7");
    struct served_set *set = served_get(served);
    struct channel_frame frame;
    uint8_t body[CHANNEL_MAX_WORDS];
    for (unsigned i = 0; i < 3; i++) {
        const struct channel_fetch fetch = {.index = 1 + i % 2, .generation = 7};
        const struct served_plane *plane = served_find(set, fetch.index);
        channel_peer_ask(&peer, CHANNEL_FETCH, body, channel_put_fetch(&fetch, body));
        assert_true(channel_peer_read(&peer, &frame));
        assert_int_equal(frame.head.type, CHANNEL_SNAPSHOT);
        assert_int_equal(frame.head.body, plane->size);
        assert_memory_equal(frame.body, plane->bytes, plane->size);
        channel_frame_clear(&frame);
    }
    const struct channel_fetch gone[] = {{1, 6}, {3, 7}};
    for (unsigned i = 0; i < 2; i++) {
        channel_peer_ask(&peer, CHANNEL_FETCH, body, channel_put_fetch(&gone[i], body));
        must_outcome(&peer, PMIXFAB_ERR_NOTFOUND, "not published any more");
    }
    served_set_put(set);
    channel_peer_close(&peer);
}

/* ---- who may ---- */

SERVER_TEST(test_users)
{
    struct channel_peer peer = connected();
    struct channel_outcome why;
    world.uid = 1000;
    assert_false(channel_peer_hello(&peer, "node7", &why));
    assert_int_equal(why.code, PMIXFAB_ERR_PERM);
    assert_string_equal(why.reason, "node7: uid 1000 on 10.0.0.7 may not report for a host: only root may");
    must_close(&peer);
    world.uid = 0;
    peer = node("node7"); /* and whoever comes to its connection later */
    world.uid = 1000;
    ask_news(&peer, 11, true);
    must_outcome(&peer, PMIXFAB_ERR_PERM, "uid 1000");
    deliver(&peer);
    must_outcome(&peer, PMIXFAB_ERR_PERM, "node7: uid 1000 on 10.0.0.7 may not report for a host");
    assert_int_equal(intake.delivered, 0);
    channel_peer_close(&peer);
    world.uid = 0;
    peer = connected();
    assert_false(channel_peer_hello(&peer, "not a name", &why));
    assert_int_equal(why.code, PMIXFAB_ERR_CORRUPT);
    channel_peer_close(&peer);
}

SERVER_TEST(test_no_munged)
{
    struct channel_peer peer = node("node7"), other = connected();
    struct channel_outcome why;
    world.away = true;
    deliver(&peer);
    must_outcome(&peer, PMIXFAB_ERR_UNREACH, "no munged answers on the scheduler's host");
    assert_false(channel_peer_hello(&other, "node8", &why));
    assert_int_equal(why.code, PMIXFAB_ERR_UNREACH);
    world.away = false;
    channel_peer_close(&other);
    channel_peer_close(&peer);
}

/* ---- forged ---- */

/* A delivery whose seal is another one, for another frame than it stands in. */
static void forge(struct channel_peer *peer, void (*alter)(struct channel_seal *seal), const char *sealed)
{
    const struct channel_seal own = peer->nonces;
    struct channel_seal seal = peer->nonces;
    uint8_t digest[CHANNEL_DIGEST], bytes[CHANNEL_SEAL];
    seal.type = CHANNEL_DELIVER;
    seal.request = ++peer->last;
    if (alter != NULL)
        alter(&seal);
    channel_digest(sealed, strlen(sealed), digest);
    channel_seal_put(&seal, digest, bytes);
    char *credential = world_credential(bytes, sizeof(bytes));
    channel_peer_put(peer, CHANNEL_DELIVER, peer->last, credential, "a report", 8);
    free(credential);
    peer->nonces = own;
}

static void other_node(struct channel_seal *seal)
{
    seal->node[3] ^= 1;
}

static void other_scheduler(struct channel_seal *seal)
{
    seal->scheduler[15] ^= 1;
}

static void other_number(struct channel_seal *seal)
{
    seal->request++;
}

static void other_type(struct channel_seal *seal)
{
    seal->type = CHANNEL_FETCH;
}

static void an_answer(struct channel_seal *seal)
{
    seal->type = CHANNEL_ACCEPTED;
}

SERVER_TEST(test_forged)
{
    static void (*const alters[])(struct channel_seal *) = {other_node, other_scheduler, other_number,
                                                            other_type, an_answer};
    struct channel_peer peer = node("node7");
    for (size_t i = 0; i < sizeof(alters) / sizeof(alters[0]); i++) {
        forge(&peer, alters[i], "a report");
        must_outcome(&peer, PMIXFAB_ERR_PERM,
                     "of uid 0 on 10.0.0.7 seals another message, or one of another connection");
    }
    forge(&peer, NULL, "a Report");
    must_outcome(&peer, PMIXFAB_ERR_PERM, "seals other content");
    char *other = world_credential("hello", 5);
    channel_peer_put(&peer, CHANNEL_DELIVER, ++peer.last, other, "a report", 8);
    must_outcome(&peer, PMIXFAB_ERR_FOREIGN, "does not seal a message of fabricd");
    free(other);
    channel_peer_put(&peer, CHANNEL_DELIVER, ++peer.last, "MUNGE:?", "a report", 8);
    must_outcome(&peer, PMIXFAB_ERR_PERM, "altered, or made with another key");
    channel_peer_put(&peer, CHANNEL_DELIVER, ++peer.last, "", "a report", 8);
    must_outcome(&peer, PMIXFAB_ERR_PERM, "altered, or made with another key");
    assert_int_equal(intake.delivered, 0);
    deliver(&peer); /* and one that is right */
    assert_int_equal(outcome_of(&peer).code, PMIXFAB_OK);
    channel_peer_close(&peer);
}

SERVER_TEST(test_replayed)
{
    struct channel_peer peer = node("node7"), other = node("node7");
    char *credential = channel_peer_seal(&peer, CHANNEL_DELIVER, ++peer.last, "a report", 8);
    channel_peer_put(&peer, CHANNEL_DELIVER, peer.last, credential, "a report", 8);
    assert_int_equal(outcome_of(&peer).code, PMIXFAB_OK);
    channel_peer_put(&other, CHANNEL_DELIVER, ++other.last, credential, "a report", 8);
    must_outcome(&other, PMIXFAB_ERR_PERM, "was used before");
    while (world.n > 0) /* munged was restarted: it has forgotten what it opened */
        free(world.opened[--world.n]);
    channel_peer_put(&other, CHANNEL_DELIVER, ++other.last, credential, "a report", 8);
    must_outcome(&other, PMIXFAB_ERR_PERM, "another connection");
    channel_peer_put(&peer, CHANNEL_DELIVER, peer.last, credential, "a report", 8);
    must_outcome(&peer, PMIXFAB_ERR_PERM, "whose number was used before");
    must_close(&peer);
    peer = node("node7");
    peer.last = UINT32_MAX; /* the next one is 0 */
    deliver(&peer);
    must_outcome(&peer, PMIXFAB_ERR_PERM, "whose number was used before");
    must_close(&peer);
    peer = node("node7");
    peer.last = 1000;
    deliver(&peer);
    assert_int_equal(outcome_of(&peer).code, PMIXFAB_OK);
    peer.last = 936; /* too far behind */
    deliver(&peer);
    must_outcome(&peer, PMIXFAB_ERR_PERM, "whose number was used before");
    must_close(&peer);
    free(credential);
    channel_peer_close(&other);
    assert_int_equal(intake.delivered, 2);
}

/* The bytes of a delivery that is right, on this connection. */
static struct evbuffer *right_frame(struct channel_peer *peer)
{
    struct evbuffer *out = evbuffer_new();
    char *credential = channel_peer_seal(peer, CHANNEL_DELIVER, ++peer->last, "a report", 8);
    const struct channel_head head = {CHANNEL_VERSION, CHANNEL_DELIVER, peer->last,
                                      (uint32_t)strlen(credential), 8};
    assert_int_equal(channel_put(out, &head, credential, "a report"), PMIXFAB_OK);
    free(credential);
    return out;
}

static void send_altered(size_t at, uint8_t by)
{
    struct channel_peer peer = node("node7");
    struct evbuffer *bytes = right_frame(&peer);
    uint8_t *all = evbuffer_pullup(bytes, -1);
    all[at] ^= by;
    channel_peer_write(&peer, all, evbuffer_get_length(bytes));
    shutdown(peer.fd, SHUT_WR);
    must_close(&peer);
    evbuffer_free(bytes);
}

/* No byte of a frame can be another one, and none can be missing. */
SERVER_TEST(test_altered_and_cut)
{
    struct channel_peer first = node("node7");
    struct evbuffer *bytes = right_frame(&first);
    const size_t size = evbuffer_get_length(bytes);
    evbuffer_free(bytes);
    channel_peer_close(&first);
    for (size_t i = 0; i < size - 1; i++) {
        const bool in_maker =
            i >= CHANNEL_HEAD && i < CHANNEL_HEAD + 30; /* which the played munge does not protect */
        if (!in_maker)
            send_altered(i, i % 2 == 0 ? 0x01 : 0x10);
        struct channel_peer peer = node("node7");
        bytes = right_frame(&peer);
        channel_peer_write(&peer, evbuffer_pullup(bytes, -1), i);
        evbuffer_free(bytes);
        channel_peer_close(&peer);
    }
    TURN_UNTIL(status().connected == 0);
    assert_int_equal(intake.delivered, 0);
}

/* ---- too much ---- */

static void must_refuse_head(struct channel_head head, int code, const char *part)
{
    struct channel_peer peer = node("node7");
    struct evbuffer *out = evbuffer_new();
    static char credential[CHANNEL_MAX_CREDENTIAL + 1];
    memset(credential, 'x', sizeof(credential));
    assert_int_equal(channel_put_head(out, &head, head.credential > sizeof(credential) ? "" : credential),
                     PMIXFAB_OK);
    channel_peer_write(&peer, evbuffer_pullup(out, -1), evbuffer_get_length(out));
    must_outcome(&peer, code, part);
    must_close(&peer);
    evbuffer_free(out);
}

SERVER_TEST(test_sizes)
{
    must_refuse_head((struct channel_head){CHANNEL_VERSION, CHANNEL_DELIVER, 2, 10, FAB_DELIVERY_MAX + 1},
                     PMIXFAB_ERR_RANGE, "bytes: at most");
    must_refuse_head((struct channel_head){CHANNEL_VERSION, CHANNEL_WAIT, 2, 10, CHANNEL_MAX_WORDS + 1},
                     PMIXFAB_ERR_RANGE, "a message of 1025 bytes: at most 1024 are accepted");
    must_refuse_head((struct channel_head){CHANNEL_VERSION, CHANNEL_WAIT, 2, CHANNEL_MAX_CREDENTIAL + 1, 10},
                     PMIXFAB_ERR_RANGE, "a credential of 4097 bytes");
    must_refuse_head((struct channel_head){CHANNEL_VERSION, CHANNEL_HELLO, 2, 10, 10}, PMIXFAB_ERR_CORRUPT,
                     "unexpected message");
    must_refuse_head((struct channel_head){CHANNEL_VERSION, CHANNEL_NEWS, 2, 10, 10}, PMIXFAB_ERR_CORRUPT,
                     "unexpected message");
    must_refuse_head((struct channel_head){7, CHANNEL_WAIT, 2, 10, 10}, PMIXFAB_ERR_NEWER,
                     "it speaks version 7 of the nodes' channel, and this fabricd version 1");
}

/* A delivery has its room from its head on, until its connection is gone. */
SERVER_TEST(test_many_bytes)
{
    enum { FIT = ((64 << 20) - 1024) / FAB_DELIVERY_MAX };
    static struct channel_peer peers[FIT];
    static char body[2000];
    struct channel_peer last = node("node7");
    for (unsigned i = 0; i < FIT; i++) {
        const struct channel_head head = {CHANNEL_VERSION, CHANNEL_DELIVER, 2, 1, FAB_DELIVERY_MAX};
        struct evbuffer *out = evbuffer_new();
        peers[i] = node(printed("host%u", i / 4));
        assert_int_equal(channel_put_head(out, &head, "x"), PMIXFAB_OK);
        channel_peer_write(&peers[i], evbuffer_pullup(out, -1), evbuffer_get_length(out));
        evbuffer_free(out);
    }
    for (unsigned i = 0; i < 20; i++)
        world_turn();
    channel_peer_ask(&last, CHANNEL_DELIVER, body, sizeof(body));
    must_outcome(&last, PMIXFAB_ERR_BUSY, "too many deliveries are waiting");
    channel_peer_close(&peers[0]);
    TURN_UNTIL(status().connected == FIT);
    channel_peer_ask(&last, CHANNEL_DELIVER, body, sizeof(body));
    assert_int_equal(outcome_of(&last).code, PMIXFAB_OK);
    for (unsigned i = 1; i < FIT; i++)
        channel_peer_close(&peers[i]);
    channel_peer_close(&last);
}

SERVER_TEST(test_many_requests)
{
    struct channel_peer peer = node("node7");
    unsigned busy = 0;
    intake.keeps = true;
    for (unsigned i = 0; i < 40; i++)
        deliver(&peer);
    for (unsigned i = 0; i < 24; i++)
        busy += outcome_of(&peer).code == PMIXFAB_ERR_BUSY;
    assert_int_equal(busy, 24);
    TURN_UNTIL(intake.delivered == 16);
    channel_answer(intake.kept[15], PMIXFAB_OK, 4711, "");
    assert_int_equal(outcome_of(&peer).code, PMIXFAB_OK);
    intake.keeps = false;
    deliver(&peer);
    assert_int_equal(outcome_of(&peer).code, PMIXFAB_OK);
    for (unsigned i = 0; i < 15; i++)
        channel_answer(intake.kept[i], PMIXFAB_ERR_CONFLICT, 0, "send the whole report");
    for (unsigned i = 0; i < 15; i++)
        must_outcome(&peer, PMIXFAB_ERR_CONFLICT, "send the whole report");
    channel_peer_close(&peer);
}

SERVER_TEST(test_its_node_is_gone)
{
    struct channel_peer peer = node("node7");
    intake.keeps = true;
    deliver(&peer);
    TURN_UNTIL(intake.n_kept == 1);
    channel_peer_close(&peer);
    TURN_UNTIL(status().connected == 0);
    channel_answer(intake.kept[0], PMIXFAB_OK, 4711, "");
}

SERVER_TEST(test_many_connections)
{
    struct channel_peer silent[40], nodes[5];
    for (unsigned i = 0; i < 40; i++)
        silent[i] = connected();
    TURN_UNTIL(status().unproven == 16);
    for (unsigned i = 0; i < 5; i++)
        nodes[i] = node("node7"); /* among silent ones there is room; the fifth ends the first */
    must_close(&nodes[0]);
    assert_int_equal(status().connected, 4);
    for (unsigned i = 0; i < 40; i++)
        channel_peer_close(&silent[i]);
    for (unsigned i = 1; i < 5; i++) {
        deliver(&nodes[i]);
        assert_int_equal(outcome_of(&nodes[i]).code, PMIXFAB_OK);
        channel_peer_close(&nodes[i]);
    }
}
