/* ingest_auth.c - who made a credential, and may he say that of this host? */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/checker/checker.h"
#include "fabricd/sources/entry.h"
#include "topo/join/join.h"
#include "topo/model/host_name.h"

static munge_err_t real_decode(struct checker *checker, const char *credential, struct ingest_credential *out)
{
    struct checker_opened opened;
    if (!checker_ask_and_wait(checker, CHECKER_CREDENTIAL, credential, &opened))
        return EMUNGE_TIMEOUT;
    out->bytes = opened.bytes;
    out->size = (int)opened.size;
    out->uid = opened.answer.uid;
    out->gid = opened.answer.gid;
    out->origin = opened.answer.origin;
    return (munge_err_t)opened.answer.code;
}

static int real_resolve(struct checker *checker, const char *host, struct ingest_addresses *out)
{
    struct checker_opened opened;
    out->n = 0;
    if (!checker_ask_and_wait(checker, CHECKER_NAME, host, &opened))
        return EAI_AGAIN;
    while (out->n < sizeof(out->at) / sizeof(out->at[0]) && (out->n + 1) * sizeof(out->at[0]) <= opened.size)
        out->n++;
    if (out->n > 0)
        memcpy(out->at, opened.bytes, out->n * sizeof(out->at[0]));
    free(opened.bytes);
    return opened.answer.code;
}

/* Loopback and no address at all are what some munged says of its host. */
static bool is_anywhere(struct in_addr address)
{
    return address.s_addr == htonl(INADDR_ANY) || ntohl(address.s_addr) >> 24 == 127;
}

/* Does this host's own munged say that of itself? */
static bool is_own_munged(struct checker *checker, struct in_addr address)
{
    struct checker_opened opened;
    const bool answered = checker_ask_and_wait(checker, CHECKER_ORIGIN, "", &opened);
    free(opened.bytes);
    return answered && opened.answer.code == (int)EMUNGE_SUCCESS &&
           opened.answer.origin.s_addr == address.s_addr;
}

static bool real_is_ours(struct checker *checker, struct in_addr address)
{
    struct ifaddrs *all = NULL;
    bool ours = false;
    if (is_anywhere(address))
        return is_own_munged(checker, address);
    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *one = all; one != NULL && !ours; one = one->ifa_next)
        ours = one->ifa_addr != NULL && one->ifa_addr->sa_family == AF_INET &&
               ((const struct sockaddr_in *)(const void *)one->ifa_addr)->sin_addr.s_addr == address.s_addr;
    freeifaddrs(all);
    return ours;
}

const struct ingest_calls ingest_real_calls = {real_decode, real_resolve, real_is_ours, 5, NULL};
const struct ingest_calls *ingest_calls = &ingest_real_calls;

struct where {
    char text[INET_ADDRSTRLEN];
};

static struct where origin_address_text(struct in_addr address)
{
    struct where where = {"?"};
    inet_ntop(AF_INET, &address, where.text, sizeof(where.text));
    return where;
}

/* What munged says of a credential that it does not accept. */
static int munge_explain(munge_err_t rc, const struct ingest_credential *made, struct fab_err *err)
{
    const struct where where = origin_address_text(made->origin);
    switch (rc) {
    case EMUNGE_SOCKET:
    case EMUNGE_TIMEOUT:
        return fab_fail(err, PMIXFAB_ERR_UNREACH, INGEST_NO_MUNGED);
    case EMUNGE_CRED_EXPIRED:
        return fab_fail(err, PMIXFAB_ERR_PERM,
                        "the credential of uid %u on %s has expired: are the clocks of that host and the "
                        "scheduler's alike?",
                        (unsigned)made->uid, where.text);
    case EMUNGE_CRED_REWOUND:
        return fab_fail(err, PMIXFAB_ERR_PERM,
                        "the credential of uid %u on %s was made in the future: are the clocks of that host "
                        "and the scheduler's alike?",
                        (unsigned)made->uid, where.text);
    case EMUNGE_CRED_REPLAYED:
        return fab_fail(err, PMIXFAB_ERR_PERM,
                        "the credential of uid %u on %s was used before: each is good once",
                        (unsigned)made->uid, where.text);
    case EMUNGE_CRED_UNAUTHORIZED:
        return fab_fail(err, PMIXFAB_ERR_PERM, "the credential is for another user than the scheduler's");
    case EMUNGE_NO_MEMORY:
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    default:
        return fab_fail(
            err, PMIXFAB_ERR_PERM,
            "munged does not accept the credential (%s): it was altered, or made with another key",
            munge_strerror(rc));
    }
}

/* ---- the result --------------------------------------------------------------------------------- */

static bool is_this_host(const struct ingest_rules *rules, const char *host)
{
    char name[256] = "";
    if (fab_same_host(rules->host, host))
        return true;
    return gethostname(name, sizeof(name) - 1) == 0 && fab_same_host(name, host);
}

/* Is the origin an address of the host that is described? */
static int judge_name(const struct ingest_check *check, struct ingest_name name, struct fab_err *err)
{
    const struct ingest_credential *made = &check->made;
    const char *host = check->delivery.host;
    const struct where where = origin_address_text(made->origin);
    if (name.state == NAME_RIGHT)
        return PMIXFAB_OK;
    if (name.state == NAME_LATER)
        return fab_fail(
            err, PMIXFAB_ERR_BUSY,
            "%s: uid %u on %s has named hosts that the scheduler's host could not resolve, which took "
            "long: come again later",
            host, (unsigned)made->uid, where.text);
    if (name.state == NAME_FAILED && ingest_names_may_pass(name.error))
        return fab_fail(
            err, PMIXFAB_ERR_BUSY,
            "%s: the scheduler's host cannot resolve this name now (%s), so that uid %u on %s is not "
            "believed yet: does its name server answer? Else put it into /etc/hosts there",
            host, gai_strerror(name.error), (unsigned)made->uid, where.text);
    if (name.state == NAME_FAILED)
        return fab_fail(err, PMIXFAB_ERR_PERM,
                        "%s: the scheduler's host cannot resolve this name (%s), so that uid %u on %s is not "
                        "believed: put it into DNS or /etc/hosts there",
                        host, gai_strerror(name.error), (unsigned)made->uid, where.text);
    if (is_anywhere(made->origin))
        return fab_fail(err, PMIXFAB_ERR_PERM,
                        "%s: the credential of uid %u says that it was made on %s, which can be any host: "
                        "give the munged there its address with --origin",
                        host, (unsigned)made->uid, where.text);
    return fab_fail(err, PMIXFAB_ERR_PERM,
                    "%s: uid %u on %s may not describe this host, which is %s: a host describes itself only",
                    host, (unsigned)made->uid, where.text,
                    name.first.s_addr == INADDR_ANY ? "elsewhere" : origin_address_text(name.first).text);
}

static int check_user(const struct ingest_rules *rules, const struct ingest_credential *made,
                      const char *host, struct fab_err *err)
{
    if (made->uid == 0 || (rules->node_user[0] != '\0' && made->uid == rules->node_uid))
        return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_PERM,
                    "%s: uid %u on %s may not describe a host: that is for root%s%.60s", host,
                    (unsigned)made->uid, origin_address_text(made->origin).text,
                    rules->node_user[0] == '\0' ? "" : " and ", rules->node_user);
}

/* ---- one call after the other ------------------------------------------------------------------- */

int64_t ingest_check_now(const struct ingest_calls *calls)
{
    return calls->milliseconds != NULL ? calls->milliseconds() : clock_now(CLOCK_MONOTONIC) / 1000;
}

void ingest_check_call(struct ingest_check *check)
{
    const struct ingest_calls *calls = check->calls;
    check->began = ingest_check_now(calls);
    switch (check->call) {
    case INGEST_DECODE:
        check->made = (struct ingest_credential){.uid = (uid_t)-1};
        check->munge = calls->decode(check->checker, check->credential, &check->made);
        break;
    case INGEST_IS_OURS:
        check->is_ours = calls->is_ours(check->checker, check->made.origin);
        break;
    case INGEST_RESOLVE:
        check->error = calls->resolve(check->checker, check->delivery.host, &check->addresses);
        break;
    }
    check->ended = ingest_check_now(calls);
}

/* What is inside, and who made it? */
static int check_decoded(struct ingest_check *check, const struct ingest_rules *rules, struct fab_err *err)
{
    const struct ingest_credential *made = &check->made;
    struct fab_err why = {""};
    free(check->credential);
    check->credential = NULL;
    if (check->munge != EMUNGE_SUCCESS)
        return munge_explain(check->munge, made, err);
    int rc = made->size <= 0 ? fab_fail(&why, PMIXFAB_ERR_TRUNCATED, "it is empty") : PMIXFAB_OK;
    if (rc == PMIXFAB_OK)
        rc = fab_delivery_decode(made->bytes, (size_t)made->size, &check->delivery, &why);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "the credential of uid %u on %s holds no delivery: %.300s",
                        (unsigned)made->uid, origin_address_text(made->origin).text,
                        why.text[0] != '\0' ? why.text : pmixfab_strerror(rc));
    return check_user(rules, made, check->delivery.host, err);
}

/* The name is to be judged. True: it is to be resolved first. */
static bool check_name(struct ingest_check *check, const struct ingest_names *names, int *rc,
                       struct fab_err *err)
{
    struct ingest_name name;
    check->call = INGEST_RESOLVE;
    if (!ingest_name_known(names, check->delivery.host, check->made.origin, ingest_check_now(check->calls),
                           &name))
        return true;
    *rc = judge_name(check, name, err);
    return false;
}

bool ingest_check_next(struct ingest_check *check, const struct ingest_rules *rules,
                       struct ingest_names *names, int *rc, struct fab_err *err)
{
    const char *host = check->delivery.host;
    *rc = PMIXFAB_OK;
    switch (check->call) {
    case INGEST_DECODE:
        *rc = check_decoded(check, rules, err);
        if (*rc != PMIXFAB_OK)
            return false;
        check->call = INGEST_IS_OURS;
        return is_this_host(rules, host) || check_name(check, names, rc, err);
    case INGEST_IS_OURS:
        return !check->is_ours && check_name(check, names, rc, err);
    case INGEST_RESOLVE:
        *rc = judge_name(check,
                         ingest_name_learn(names, host, check->made.origin, check->error, &check->addresses,
                                           check->began, check->ended),
                         err);
    }
    return false;
}
