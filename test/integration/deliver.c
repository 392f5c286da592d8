/*
 * deliver.c - delivers reports of hosts to a fabricd over the nodes' channel: good ones, and such as must be
 * refused.
 *
 *   deliver HOST:PORT SPEC...              each SPEC is a delivery; a line for each answer
 *   deliver HOST:PORT orders HOST DIGEST   asks what is wanted of a host: "DIGEST scan" or "DIGEST"
 *
 * A SPEC is KEY=VALUE,KEY=VALUE...:
 *   host=NAME     of the delivery (default: node); a # in it is the number of the time (0, 1, ...)
 *   inside=NAME   of the report in it
 *   ports=N       of the report (1)
 *   before=N      it is a change of the report with N ports
 *   uid=N         who makes the credential of the delivery
 *   hello=N       who makes that of the connection
 *   ttl=N         its seconds
 *   late=1        it is given when it has expired
 *   twice=1       the credential is given again, with the next request
 *   again=1       the same message is given again
 *   alter=1       one character of the credential is another
 *   change=1      one byte of the message is another than was sealed
 *   damage=1      one byte of the report in it is another
 *   cut=N         the last N bytes of the delivery in it are missing
 *   times=N       so many, each with its own credential
 *   at_once=1     all of them before the first answer
 *   text=TEXT     that is delivered instead
 *   file=PATH     what is in it is delivered instead
 *   raw=N         so many bytes instead of a credential; without munge that of the connection, too
 *   made=TEXT     a credential that somebody else made
 *   other=1       a credential of another connection
 *
 * An answer is printed as "CODE DIGEST REASON", digest in hexadecimal. Status 1: no answer.
 */
#include <stdbool.h>
#include <time.h>

#include "test/integration/channel_tool.h"
#include "topo/model/delivery.h"

#define CHECK(what)                                                                                          \
    do {                                                                                                     \
        if (!(what)) {                                                                                       \
            fprintf(stderr, "deliver: line %d: %s\n", __LINE__, #what);                                      \
            exit(2);                                                                                         \
        }                                                                                                    \
    } while (0)

struct spec {
    const char *host, *inside, *text, *file, *made;
    unsigned ports, before, uid, ttl, times, raw, cut;
    unsigned hello;
    bool late, twice, again, alter, at_once, delta, damage, change, other;
};

static const char *place;
static struct channel_peer peer = {.fd = -1};
static const struct spec *making; /* whose credential is made */
static unsigned n_asked;
static int status;

/* ---- answers ---- */

static void print_outcome(const struct channel_outcome *outcome)
{
    printf("%d %llx %s\n", outcome->code, (unsigned long long)outcome->held, outcome->reason);
    fflush(stdout);
}

static void wait_answers(void)
{
    struct channel_outcome outcome;
    for (; n_asked > 0; n_asked--) {
        if (!channel_peer_outcome(&peer, &outcome)) {
            fprintf(stderr, "no answer\n");
            status = 1;
            n_asked = 0;
            return;
        }
        print_outcome(&outcome);
    }
}

/* ---- deliveries ---- */

static void make_report(struct fab_report *report, const char *host, unsigned ports)
{
    fab_report_init(report);
    CHECK(fab_report_host(report, host, NULL) == 0);
    for (unsigned i = 0; i < ports; i++) {
        uint32_t item;
        CHECK(fab_report_item(report, FAB_FROM_VERBS, &item) == 0);
        CHECK(fab_report_printf(report, item, FAB_FACT_NAME, "mlx5_%u", i) == 0);
        CHECK(fab_report_fact(report, item, FAB_FACT_PORT, "1") == 0);
    }
    CHECK(fab_report_finish(report, NULL) == 0);
}

static void make_delivery(const struct spec *spec, void **bytes, size_t *size)
{
    struct fab_report before, after;
    struct fab_delivery delivery = {.base = 0};
    void *body;
    make_report(&before, spec->inside, spec->before);
    make_report(&after, spec->inside, spec->ports);
    snprintf(delivery.host, sizeof(delivery.host), "%s", spec->host);
    delivery.digest = fab_report_digest(&after);
    if (spec->delta) {
        delivery.base = fab_report_digest(&before);
        CHECK(fab_report_delta(&before, &after, &body, &delivery.size) == 0);
    } else {
        CHECK(fab_report_encode(&after, &body, &delivery.size) == 0);
    }
    delivery.body = body;
    if (spec->damage)
        ((unsigned char *)body)[delivery.size / 2] ^= 0x20;
    CHECK(fab_delivery_encode(&delivery, bytes, size) == 0);
    free(body);
    fab_report_destroy(&before);
    fab_report_destroy(&after);
}

static char *raw_text(size_t n)
{
    char *text = malloc(n + 8);
    CHECK(text != NULL);
    memset(text, 'x', n);
    memcpy(text, "MUNGE:", 6);
    text[n] = '\0';
    return text;
}

static char *make_credential(const uint8_t seal[CHANNEL_SEAL], void *cbdata)
{
    char *credential = NULL;
    const bool hello = peer.last == 1;
    (void)cbdata;
    if (!hello && making->raw > 0)
        return raw_text(making->raw);
    if (!hello && making->made != NULL)
        return strdup(making->made);
    munge_ctx_t ctx = munge_ctx_create();
    CHECK(ctx != NULL);
    if (!hello && making->ttl > 0)
        CHECK(munge_ctx_set(ctx, MUNGE_OPT_TTL, (int)making->ttl) == EMUNGE_SUCCESS);
    CHECK(seteuid(hello ? making->hello : making->uid) == 0);
    munge_err_t rc = munge_encode(&credential, ctx, seal, CHANNEL_SEAL);
    CHECK(seteuid(getuid()) == 0);
    munge_ctx_destroy(ctx);
    if (rc != EMUNGE_SUCCESS && making->raw > 0)
        return raw_text(making->raw);
    CHECK(rc == EMUNGE_SUCCESS);
    if (!hello && making->alter) {
        char *middle = credential + strlen(credential) / 2;
        *middle = *middle == 'A' ? 'B' : 'A';
    }
    return credential;
}

/* For its host; false: it is refused, which is the answer. */
static bool be_connected(const struct spec *spec)
{
    struct channel_outcome why;
    making = spec;
    if (peer.fd >= 0)
        return true;
    peer.encode = make_credential;
    if (!tool_open(&peer, place)) {
        fprintf(stderr, "connect: nobody listens at %s\n", place);
        exit(1);
    }
    if (channel_peer_hello(&peer, spec->host, &why))
        return true;
    if (why.code == 0)
        status = 1;
    else
        print_outcome(&why);
    channel_peer_close(&peer);
    return false;
}

/* munge counts whole seconds: behind the end by its own clock. */
static void let_expire(const struct spec *spec)
{
    const time_t end = time(NULL) + (time_t)spec->ttl + 1;
    while (time(NULL) <= end)
        usleep(10000);
}

static void make_body(const struct spec *spec, void **bytes, size_t *size)
{
    if (spec->file != NULL) {
        FILE *f = fopen(spec->file, "re");
        *bytes = malloc(FAB_DELIVERY_MAX);
        CHECK(f != NULL && *bytes != NULL);
        *size = fread(*bytes, 1, FAB_DELIVERY_MAX, f);
        fclose(f);
    } else if (spec->text == NULL) {
        make_delivery(spec, bytes, size);
        CHECK(spec->cut < *size);
        *size -= spec->cut;
    } else {
        *size = strlen(spec->text);
        *bytes = strdup(spec->text);
    }
}

static void give(const struct spec *spec)
{
    void *bytes;
    size_t size;
    if (!be_connected(spec))
        return;
    make_body(spec, &bytes, &size);
    const struct channel_seal own = peer.nonces;
    uint32_t number = ++peer.last;
    if (spec->other)
        peer.nonces.scheduler[0] ^= 1;
    char *credential = channel_peer_seal(&peer, CHANNEL_DELIVER, number, bytes, size);
    peer.nonces = own;
    if (spec->change)
        ((char *)bytes)[size / 2] ^= 1;
    if (spec->late)
        let_expire(spec);
    for (int i = 0; i < (spec->twice || spec->again ? 2 : 1); i++) {
        if (i > 0 && spec->twice)
            number = ++peer.last;
        channel_peer_put(&peer, CHANNEL_DELIVER, number, credential, bytes, size);
        n_asked++;
        if (!spec->at_once)
            wait_answers();
    }
    free(credential);
    free(bytes);
}

static void set(struct spec *spec, const char *key, char *value)
{
    unsigned number = (unsigned)strtoul(value, NULL, 10);
    const struct {
        const char *key;
        unsigned *field;
    } numbers[] = {{"ports", &spec->ports}, {"before", &spec->before}, {"uid", &spec->uid},
                   {"ttl", &spec->ttl},     {"times", &spec->times},   {"raw", &spec->raw},
                   {"cut", &spec->cut},     {"hello", &spec->hello}};
    const struct {
        const char *key;
        bool *field;
    } marks[] = {{"late", &spec->late},     {"twice", &spec->twice},     {"alter", &spec->alter},
                 {"damage", &spec->damage}, {"at_once", &spec->at_once}, {"before", &spec->delta},
                 {"again", &spec->again},   {"change", &spec->change},   {"other", &spec->other}};
    bool known = true;
    if (strcmp(key, "host") == 0)
        spec->host = value;
    else if (strcmp(key, "inside") == 0)
        spec->inside = value;
    else if (strcmp(key, "text") == 0)
        spec->text = value;
    else if (strcmp(key, "file") == 0)
        spec->file = value;
    else if (strcmp(key, "made") == 0)
        spec->made = value;
    else
        known = false;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (strcmp(key, numbers[i].key) == 0)
            *numbers[i].field = number, known = true;
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (strcmp(key, marks[i].key) == 0)
            *marks[i].field = true, known = true;
    CHECK(known);
}

static void deliver(char *text)
{
    struct spec spec = {.host = "node", .ports = 1, .times = 1, .uid = getuid(), .hello = getuid()};
    char *rest = NULL;
    for (char *pair = strtok_r(text, ",", &rest); pair != NULL; pair = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(pair, '=');
        CHECK(value != NULL);
        *value++ = '\0';
        set(&spec, pair, value);
    }
    const char *host = spec.host, *inside = spec.inside, *mark = strchr(host, '#');
    char name[FAB_HOST_MAX + 1];
    for (unsigned i = 0; i < spec.times; i++) {
        if (mark != NULL) {
            snprintf(name, sizeof(name), "%.*s%u%s", (int)(mark - host), host, i, mark + 1);
            spec.host = name;
        }
        spec.inside = inside == NULL ? spec.host : inside;
        give(&spec);
    }
    wait_answers();
}

static void ask_orders(const char *host, uint64_t digest)
{
    const struct spec spec = {.host = host, .uid = getuid()};
    const struct channel_wait wait = {.held = digest, .at_once = true};
    uint8_t body[CHANNEL_MAX_WORDS];
    struct channel_frame frame;
    struct channel_news news;
    if (!be_connected(&spec))
        exit(1);
    channel_peer_ask(&peer, CHANNEL_WAIT, body, channel_put_wait(&wait, body));
    CHECK(channel_peer_read(&peer, &frame));
    CHECK(channel_get_news(frame.body, frame.head.body, &news) == PMIXFAB_OK);
    printf("%llx %s\n", (unsigned long long)news.held, news.scan ? "scan" : "");
    free(news.planes);
    channel_frame_clear(&frame);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: deliver HOST:PORT SPEC... | orders HOST DIGEST\n");
        return 2;
    }
    place = argv[1];
    if (strcmp(argv[2], "orders") == 0 && argc == 5)
        ask_orders(argv[3], strtoull(argv[4], NULL, 16));
    else
        for (int i = 2; i < argc; i++)
            deliver(argv[i]);
    channel_peer_close(&peer);
    return status;
}
