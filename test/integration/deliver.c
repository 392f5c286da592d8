/*
 * deliver.c - delivers reports of hosts to a fabricd over PMIx: good ones, and such as must be refused.
 *
 *   deliver URI SPEC...              each SPEC is a delivery; a line for each answer
 *   deliver URI orders HOST DIGEST   asks what is wanted of a host; "ORDER DIGEST"
 *
 * A SPEC is KEY=VALUE,KEY=VALUE...:
 *   host=NAME     of the delivery (default: node); a # in it is the number of the time (0, 1, ...)
 *   inside=NAME   of the report in it
 *   ports=N       of the report (1)
 *   before=N      it is a change of the report with N ports
 *   uid=N         who makes the credential
 *   ttl=N         its seconds
 *   late=1        it is given when it has expired
 *   twice=1       it is given again
 *   alter=1       one character of it is another
 *   damage=1      one byte of the report in it is another
 *   cut=N         the last N bytes of the delivery in it are missing
 *   times=N       so many, each with its own credential
 *   at_once=1     all of them before the first answer
 *   text=TEXT     that is in the credential instead
 *   raw=N         so many bytes instead of a credential
 *   made=TEXT     a credential that somebody else made
 *
 * An answer is printed as "CODE DIGEST REASON", digest in hexadecimal. Status 1: no answer.
 */
#include <munge.h>
#include <pmix_tool.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pmix/relay/relay.h"
#include "test/integration/stock_status.h"
#include "topo/model/delivery.h"

#define CHECK(what)                                                                                          \
    do {                                                                                                     \
        if (!(what)) {                                                                                       \
            fprintf(stderr, "deliver: line %d: %s\n", __LINE__, #what);                                      \
            exit(2);                                                                                         \
        }                                                                                                    \
    } while (0)

struct spec {
    const char *host, *inside, *text, *made;
    unsigned ports, before, uid, ttl, times, raw, cut;
    bool late, twice, alter, at_once, change, damage;
};

/* ---- answers ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned n_asked, n_answered;
static int status;

static void print_answer(const pmix_pdata_t *data, size_t n)
{
    const char *text = "?";
    uint64_t digest = 0;
    int code = 1;
    for (size_t i = 0; i < n; i++) {
        if (PMIX_CHECK_KEY(&data[i], RELAY_CODE) && data[i].value.type == PMIX_INT32)
            code = data[i].value.data.int32;
        else if (PMIX_CHECK_KEY(&data[i], RELAY_DIGEST) && data[i].value.type == PMIX_UINT64)
            digest = data[i].value.data.uint64;
        else if ((PMIX_CHECK_KEY(&data[i], RELAY_REASON) || PMIX_CHECK_KEY(&data[i], RELAY_SCAN_REQUEST)) &&
                 data[i].value.type == PMIX_STRING)
            text = data[i].value.data.string;
    }
    if (code != 1)
        printf("%d ", code);
    printf("%llx %s\n", (unsigned long long)digest, text == NULL ? "" : text);
    fflush(stdout);
}

static void on_answer(pmix_status_t rc, pmix_pdata_t data[], size_t n, void *cbdata)
{
    (void)cbdata;
    pthread_mutex_lock(&lock);
    if (rc == PMIX_SUCCESS) {
        print_answer(data, n);
    } else {
        fprintf(stderr, "%s\n", stock_status(rc));
        status = 1;
    }
    n_answered++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_answers(void)
{
    pthread_mutex_lock(&lock);
    while (n_answered < n_asked)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void ask(const char *op, const pmix_info_t *info, size_t n)
{
    char *keys[] = {(char *)op, NULL};
    n_asked++;
    pmix_status_t rc = PMIx_Lookup_nb(keys, info, n, on_answer, NULL);
    if (rc != PMIX_SUCCESS)
        on_answer(rc, NULL, 0, NULL);
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
    if (spec->change) {
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

static char *make_credential(const struct spec *spec)
{
    void *bytes = NULL;
    size_t size = 0;
    char *credential = NULL;
    if (spec->raw > 0)
        return raw_text(spec->raw);
    if (spec->made != NULL)
        return strdup(spec->made);
    if (spec->text != NULL) {
        size = strlen(spec->text);
        bytes = strdup(spec->text);
    } else {
        make_delivery(spec, &bytes, &size);
        CHECK(spec->cut < size);
        size -= spec->cut;
    }
    munge_ctx_t ctx = munge_ctx_create();
    CHECK(ctx != NULL);
    if (spec->ttl > 0)
        CHECK(munge_ctx_set(ctx, MUNGE_OPT_TTL, (int)spec->ttl) == EMUNGE_SUCCESS);
    CHECK(seteuid(spec->uid) == 0);
    munge_err_t rc = munge_encode(&credential, ctx, bytes, (int)size);
    CHECK(seteuid(getuid()) == 0);
    CHECK(rc == EMUNGE_SUCCESS);
    munge_ctx_destroy(ctx);
    free(bytes);
    if (spec->alter) {
        char *middle = credential + strlen(credential) / 2;
        *middle = *middle == 'A' ? 'B' : 'A';
    }
    return credential;
}

/* munge counts whole seconds: behind the end by its own clock. */
static void let_expire(const struct spec *spec)
{
    const time_t end = time(NULL) + (time_t)spec->ttl + 1;
    while (time(NULL) <= end)
        usleep(10000);
}

static void give(const struct spec *spec)
{
    char *credential = make_credential(spec);
    pmix_info_t info;
    if (spec->late)
        let_expire(spec);
    PMIX_INFO_LOAD(&info, RELAY_CREDENTIAL, credential, PMIX_STRING);
    for (int i = 0; i < (spec->twice ? 2 : 1); i++) {
        ask(RELAY_DELIVER, &info, 1);
        if (!spec->at_once)
            wait_answers();
    }
    PMIX_INFO_DESTRUCT(&info);
    free(credential);
}

static void set(struct spec *spec, const char *key, char *value)
{
    unsigned number = (unsigned)strtoul(value, NULL, 10);
    const struct {
        const char *key;
        unsigned *field;
    } numbers[] = {{"ports", &spec->ports}, {"before", &spec->before}, {"uid", &spec->uid},
                   {"ttl", &spec->ttl},     {"times", &spec->times},   {"raw", &spec->raw},
                   {"cut", &spec->cut}};
    const struct {
        const char *key;
        bool *field;
    } marks[] = {{"late", &spec->late},     {"twice", &spec->twice},     {"alter", &spec->alter},
                 {"damage", &spec->damage}, {"at_once", &spec->at_once}, {"before", &spec->change}};
    bool known = true;
    if (strcmp(key, "host") == 0)
        spec->host = value;
    else if (strcmp(key, "inside") == 0)
        spec->inside = value;
    else if (strcmp(key, "text") == 0)
        spec->text = value;
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
    struct spec spec = {.host = "node", .ports = 1, .times = 1, .uid = getuid()};
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

int main(int argc, char **argv)
{
    pmix_proc_t self;
    pmix_info_t info[2];
    if (argc < 3) {
        fprintf(stderr, "usage: deliver URI SPEC... | orders HOST DIGEST\n");
        return 2;
    }
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_URI, argv[1], PMIX_STRING);
    pmix_status_t rc = PMIx_tool_init(&self, info, 1);
    if (rc != PMIX_SUCCESS) {
        fprintf(stderr, "connect: %s\n", stock_status(rc));
        return 1;
    }
    if (strcmp(argv[2], "orders") == 0 && argc == 5) {
        uint64_t digest = strtoull(argv[4], NULL, 16);
        PMIX_INFO_LOAD(&info[0], PMIX_HOSTNAME, argv[3], PMIX_STRING);
        PMIX_INFO_LOAD(&info[1], RELAY_DIGEST, &digest, PMIX_UINT64);
        ask(RELAY_SCAN_REQUESTS, info, 2);
        wait_answers();
    } else {
        for (int i = 2; i < argc; i++)
            deliver(argv[i]);
    }
    PMIx_tool_finalize();
    return status;
}
