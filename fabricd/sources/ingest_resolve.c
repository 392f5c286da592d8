/*
 * ingest_resolve.c - check whether a host's name resolves to the address from which it delivers.
 *
 * The resolver may take seconds, and the intake has few threads. So answers are cached for a short time.
 * After a slow query that failed, the origin has to wait several times as long as the query took. While a
 * name server does not answer, unknown names are not queried, and a name that was right for an address stays
 * right.
 */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "fabricd/sources/entry.h"

#define GOOD_MS   30000   /* an answer is used so long without a new query, */
#define OLD_MS    3600000 /* so long while the name server does not answer, */
#define BAD_MS    2000    /* and so long if it was an error */
#define MAX_AWAY  10000   /* longest time without queries after the name server did not answer */
#define PENALTY   4       /* times the duration of a failed query: so long its origin must wait, */
#define MAX_WAIT  60000   /* at most */
#define LONG_MS   100     /* shorter failures have no penalty */
#define MAX_NAMES 16384
#define MAX_HERE  16 /* cached addresses of a name */

struct resolved_name {
    UT_hash_handle hh;
    int64_t asked; /* time of the last answer; undefined if n is 0 */
    int64_t bad_until;
    int bad; /* the resolver's error then */
    uint32_t n;
    struct in_addr addresses[MAX_HERE];
    char host[];
};

/* An origin that has named a host whose slow query failed. */
struct resolved_origin {
    UT_hash_handle hh;
    struct in_addr address;
    int64_t until;
};

/* NOLINTBEGIN(clang-analyzer-unix.Malloc): as in base/rate.c. */

static void forget_names(struct ingest_names *known, bool unknown_only)
{
    struct resolved_name *name, *next;
    HASH_ITER(hh, known->names, name, next)
    {
        if (unknown_only && name->n > 0)
            continue;
        HASH_DEL(known->names, name);
        free(name);
    }
}

static void forget_origins(struct ingest_names *known, int64_t now)
{
    struct resolved_origin *origin, *next;
    HASH_ITER(hh, known->origins, origin, next)
    {
        if (origin->until <= now) {
            HASH_DEL(known->origins, origin);
            free(origin);
        }
    }
}

void ingest_names_clear(struct ingest_names *names)
{
    forget_names(names, false);
    forget_origins(names, INT64_MAX);
    *names = (struct ingest_names){.names = NULL};
}

static bool resolved_has_address(const struct resolved_name *name, struct in_addr address)
{
    for (uint32_t i = 0; i < name->n; i++)
        if (name->addresses[i].s_addr == address.s_addr)
            return true;
    return false;
}

static struct resolved_name *resolved_find(const struct ingest_names *known, const char *host)
{
    struct resolved_name *name;
    HASH_FIND(hh, known->names, host, strlen(host), name);
    return name;
}

static struct resolved_name *resolved_add(struct ingest_names *known, const char *host)
{
    struct resolved_name *name = resolved_find(known, host);
    const size_t len = strlen(host);
    if (name != NULL)
        return name;
    if (HASH_COUNT(known->names) >= MAX_NAMES)
        forget_names(known, true); /* unknown names must not displace known ones */
    if (HASH_COUNT(known->names) >= MAX_NAMES)
        forget_names(known, false);
    name = calloc(1, sizeof(*name) + len + 1);
    if (name != NULL) {
        memcpy(name->host, host, len + 1);
        HASH_ADD_KEYPTR(hh, known->names, name->host, len, name);
    }
    return name;
}

/* ---- cached answers ----------------------------------------------------------------------------- */

bool ingest_name_known(const struct ingest_names *names, const char *host, struct in_addr origin, int64_t now,
                       struct ingest_name *out)
{
    const struct resolved_name *name = resolved_find(names, host);
    struct resolved_origin *waits;
    const bool is_away = now < names->away_until;
    HASH_FIND(hh, names->origins, &origin, sizeof(origin), waits);
    if (name != NULL && resolved_has_address(name, origin) &&
        now < name->asked + (is_away ? OLD_MS : GOOD_MS))
        *out = (struct ingest_name){.state = NAME_RIGHT};
    else if (name != NULL && now < name->bad_until)
        *out = (struct ingest_name){.state = NAME_FAILED, .error = name->bad};
    else if (is_away)
        *out = (struct ingest_name){.state = NAME_FAILED, .error = names->away};
    else if (waits != NULL && now < waits->until)
        *out = (struct ingest_name){.state = NAME_LATER};
    else
        return false;
    return true;
}

/* ---- new answers -------------------------------------------------------------------------------- */

static void resolve_penalize(struct ingest_names *names, struct in_addr address, int64_t now, int64_t took)
{
    const int64_t wait = took * PENALTY < MAX_WAIT ? took * PENALTY : MAX_WAIT;
    struct resolved_origin *origin;
    if (took < LONG_MS)
        return;
    HASH_FIND(hh, names->origins, &address, sizeof(address), origin);
    if (origin == NULL) {
        if (HASH_COUNT(names->origins) >= MAX_NAMES)
            forget_origins(names, now);
        if (HASH_COUNT(names->origins) < MAX_NAMES && (origin = calloc(1, sizeof(*origin))) != NULL) {
            origin->address = address;
            HASH_ADD(hh, names->origins, address, sizeof(origin->address), origin);
        }
    }
    if (origin != NULL)
        origin->until = now + wait;
}

static void take_addresses(struct resolved_name *name, const struct ingest_addresses *all)
{
    for (name->n = 0; name->n < all->n && name->n < MAX_HERE; name->n++)
        name->addresses[name->n] = all->at[name->n];
}

static struct ingest_name take_answer(const struct ingest_addresses *all, struct in_addr origin)
{
    struct ingest_name out = {.state = NAME_WRONG};
    for (uint32_t i = 0; i < all->n; i++) {
        if (i == 0)
            out.first = all->at[i];
        if (all->at[i].s_addr == origin.s_addr)
            out.state = NAME_RIGHT;
    }
    return out;
}

bool ingest_names_may_pass(int error)
{
    return error == EAI_AGAIN || error == EAI_SYSTEM || error == EAI_MEMORY || error == EAI_FAIL;
}

static struct ingest_name resolve_failed(struct ingest_names *names, const char *host, struct in_addr origin,
                                         int error, int64_t began, int64_t now)
{
    const int64_t took = now - began;
    struct resolved_name *name = resolved_add(names, host);
    if (error == EAI_AGAIN && took >= LONG_MS) { /* a quick failure may concern this name only */
        names->away = error;
        names->away_until = now + (took < MAX_AWAY ? took : MAX_AWAY);
    }
    if (name != NULL && ingest_names_may_pass(error) && resolved_has_address(name, origin) &&
        now < name->asked + OLD_MS)
        return (struct ingest_name){.state = NAME_RIGHT};
    resolve_penalize(names, origin, now, took);
    if (name != NULL) {
        name->bad = error;
        name->bad_until = now + BAD_MS;
        if (!ingest_names_may_pass(error))
            name->n = 0;
    }
    return (struct ingest_name){.state = NAME_FAILED, .error = error};
}

struct ingest_name ingest_name_learn(struct ingest_names *names, const char *host, struct in_addr origin,
                                     int error, const struct ingest_addresses *all, int64_t began,
                                     int64_t now)
{
    if (error != 0)
        return resolve_failed(names, host, origin, error, began, now);
    struct resolved_name *name = resolved_add(names, host);
    if (name != NULL) {
        take_addresses(name, all);
        name->asked = now;
        name->bad_until = INT64_MIN;
    }
    const struct ingest_name out = take_answer(all, origin);
    if (out.state == NAME_WRONG)
        resolve_penalize(names, origin, now, now - began);
    return out;
}

/* NOLINTEND(clang-analyzer-unix.Malloc) */
