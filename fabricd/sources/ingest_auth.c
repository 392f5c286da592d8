/* ingest_auth.c - check that the maker of a delivery may report for its host. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/sources/entry.h"
#include "topo/join/join.h"
#include "topo/model/host_name.h"

/* ---- the result --------------------------------------------------------------------------------- */

static bool is_this_host(const char *own, const char *host)
{
    char name[256] = "";
    if (fab_same_host(own, host))
        return true;
    return gethostname(name, sizeof(name) - 1) == 0 && fab_same_host(name, host);
}

/* Compare the origin with the addresses of the reported host. */
static int judge_name(const struct ingest_check *check, struct ingest_name name, struct fab_err *err)
{
    const struct credential_maker *made = &check->maker;
    const char *host = check->delivery.host;
    const struct credential_where where = credential_address_text(made->origin);
    if (name.state == NAME_RIGHT)
        return PMIXFAB_OK;
    if (name.state == NAME_LATER)
        return fab_fail(err, PMIXFAB_ERR_BUSY,
                        "%s: uid %u on %s has named hosts that the scheduler's host could not resolve, which "
                        "took long: try again later",
                        host, (unsigned)made->uid, where.text);
    if (name.state == NAME_FAILED && ingest_names_may_pass(name.error))
        return fab_fail(err, PMIXFAB_ERR_BUSY,
                        "%s: the scheduler's host cannot resolve this name now (%s), and so cannot verify "
                        "uid %u on %s: check its name server, or add the name to /etc/hosts there",
                        host, gai_strerror(name.error), (unsigned)made->uid, where.text);
    if (name.state == NAME_FAILED)
        return fab_fail(err, PMIXFAB_ERR_PERM,
                        "%s: the scheduler's host cannot resolve this name (%s), and so cannot verify uid %u "
                        "on %s: add the name to DNS or to /etc/hosts there",
                        host, gai_strerror(name.error), (unsigned)made->uid, where.text);
    if (credential_is_anywhere(made->origin))
        return fab_fail(err, PMIXFAB_ERR_PERM,
                        "%s: the credential of uid %u has the origin %s, which can be any host: start the "
                        "munged there with its address as --origin",
                        host, (unsigned)made->uid, where.text);
    return fab_fail(
        err, PMIXFAB_ERR_PERM,
        "%s: uid %u on %s may not report for this host, which is %s: a host may report for itself only", host,
        (unsigned)made->uid, where.text,
        name.first.s_addr == INADDR_ANY ? "elsewhere" : credential_address_text(name.first).text);
}

/* ---- the queries, one after the other ----------------------------------------------------------- */

/* Check the contents, and the maker. */
static int check_delivered(struct ingest_check *check, struct fab_err *err)
{
    const struct credential_maker *made = &check->maker;
    struct fab_err why = {""};
    int rc = check->size == 0 ? fab_fail(&why, PMIXFAB_ERR_TRUNCATED, "it is empty") : PMIXFAB_OK;
    if (rc == PMIXFAB_OK)
        rc = fab_delivery_decode(check->bytes, check->size, &check->delivery, &why);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "the credential of uid %u on %s contains no delivery: %.300s",
                        (unsigned)made->uid, credential_address_text(made->origin).text,
                        why.text[0] != '\0' ? why.text : pmixfab_strerror(rc));
    return PMIXFAB_OK;
}

/* Check the name against the origin. True: it must be resolved first. */
static bool check_name(struct ingest_check *check, const struct ingest_names *names, int64_t now, int *rc,
                       struct fab_err *err)
{
    struct ingest_name name;
    check->ask = INGEST_RESOLVE;
    if (!ingest_name_known(names, check->delivery.host, check->maker.origin, now, &name))
        return true;
    *rc = judge_name(check, name, err);
    return false;
}

bool ingest_check_next(struct ingest_check *check, const char *own, struct ingest_names *names, int64_t now,
                       int *rc, struct fab_err *err)
{
    const char *host = check->delivery.host;
    *rc = PMIXFAB_OK;
    switch (check->ask) {
    case INGEST_NOTHING:
        *rc = check_delivered(check, err);
        if (*rc != PMIXFAB_OK)
            return false;
        check->ask = INGEST_IS_OURS;
        return is_this_host(own, host) || check_name(check, names, now, rc, err);
    case INGEST_IS_OURS:
        return !check->is_ours && check_name(check, names, now, rc, err);
    case INGEST_RESOLVE:
        *rc = judge_name(check,
                         ingest_name_learn(names, host, check->maker.origin, check->error, &check->addresses,
                                           check->began, now),
                         err);
    }
    return false;
}
