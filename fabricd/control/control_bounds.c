/* control_bounds.c - limits for the resources that unprivileged callers use. */
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/control/connection.h"

/* Return whether this is root or the daemon's own user. Whether others are administrators depends on a name
 * service, which may block. */
static bool is_own(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

/* Limit log lines that any caller can cause. */
static bool may_tell(int64_t *told)
{
    const int64_t now = clock_now(CLOCK_MONOTONIC) / 1000000;
    if (*told != 0 && now - *told < CONTROL_TELL_S)
        return false;
    *told = now;
    return true;
}

/* Over all connections of a user. */
struct user_sum {
    unsigned n;
    uint64_t served; /* of the last served line */
};

static struct user_sum sum_of(const struct control *control, uid_t uid)
{
    const struct connection *connection;
    struct user_sum sum = {0};
    DL_FOREACH(control->connections, connection)
    {
        if (connection->uid != uid)
            continue;
        sum.n++;
        sum.served = connection->served > sum.served ? connection->served : sum.served;
    }
    return sum;
}

/* ---- idle connections ---- */

/* Return whether the connection waits neither for an answer nor for events. */
static bool is_idle(const struct connection *connection)
{
    return !connection->ready && !connection->follows && !connection->watches && connection->waits == 0 &&
           connection->pendings == NULL;
}

/* Find the longest idle connection of ordinary users (or of this user). NULL: none for so many seconds. */
static struct connection *find_idle(const struct control *control, const uid_t *uid, int64_t seconds)
{
    struct connection *connection, *found = NULL;
    int64_t used = clock_now(CLOCK_MONOTONIC) - seconds * 1000000;
    DL_FOREACH(control->connections, connection)
    {
        if (is_idle(connection) && connection->used <= used &&
            (uid != NULL ? connection->uid == *uid : !callers_are_named(control->callers, connection->uid))) {
            used = connection->used;
            found = connection;
        }
    }
    return found;
}

void control_on_idle(void *arg)
{
    struct control *control = arg;
    struct connection *connection;
    while ((connection = find_idle(control, NULL, CONTROL_IDLE_S)) != NULL)
        connection_free(connection);
    if (control->connections != NULL)
        timer_after(control->idle, CONTROL_IDLE_S * 1000 / 5);
}

/*
 * Find the least recently used connection of the ordinary user with the most connections; NULL: no user has
 * at least `own` + 2 connections.
 */
static struct connection *find_of_most(const struct control *control, unsigned own)
{
    struct connection *connection, *found = NULL;
    unsigned most = own + 1;
    DL_FOREACH(control->connections, connection)
    {
        const unsigned n =
            callers_are_named(control->callers, connection->uid) ? 0 : sum_of(control, connection->uid).n;
        if (n > most || (n == most && found != NULL && connection->used < found->used)) {
            most = n;
            found = connection;
        }
    }
    return found;
}

/* ---- places ---- */

static bool has_many(const struct control *control, uid_t uid, unsigned more)
{
    return !is_own(uid) && sum_of(control, uid).n + more >= CONTROL_MAX_OF_UID;
}

bool control_has_free_place(const struct control *control, uid_t uid, unsigned more, unsigned more_of_uid)
{
    const bool named = callers_are_named(control->callers, uid);
    const unsigned kept = is_own(uid) ? 0 : CONTROL_KEPT + (named ? 0 : CONTROL_KEPT_NAMED);
    return control->n_connections + more < CONTROL_MAX_CONNECTIONS - kept &&
           !has_many(control, uid, more_of_uid);
}

/*
 * Some places are reserved for root, some for configured users, and no user may have all the others: so
 * callers cannot lock others out. When all are taken, an idle connection is closed, or one of the user with
 * the most connections.
 */
bool control_has_place(struct control *control, uid_t uid)
{
    const unsigned same = sum_of(control, uid).n;
    const bool many = has_many(control, uid, 0);
    struct connection *place = NULL;
    if (control_has_free_place(control, uid, 0, 0))
        return true;
    if (!is_own(uid))
        place = find_idle(control, many ? &uid : NULL, CONTROL_IDLE_FULL_S);
    if (place == NULL && !many && !is_own(uid))
        place = find_of_most(control, same);
    if (place != NULL) {
        connection_free(place);
        return true;
    }
    /* the user may be a configured one whose name could not be looked up before */
    callers_look(control->callers, false);
    if (may_tell(&control->told_full))
        log_warning("control: %u connections are open, of uid %u %u: further ones are refused",
                    control->n_connections, (unsigned)uid, same);
    return false;
}

/* ---- the order of answers ---- */

struct connection *control_next_ready(const struct control *control, uint64_t turn, bool named)
{
    struct connection *connection, *found = NULL;
    uint64_t least = UINT64_MAX;
    DL_FOREACH(control->connections, connection)
    {
        if (!connection->ready || connection->served > turn ||
            callers_are_named(control->callers, connection->uid) != named)
            continue;
        const uint64_t served = named ? 0 : sum_of(control, connection->uid).served;
        if (found == NULL || served < least || (served == least && connection->served < found->served)) {
            least = served;
            found = connection;
        }
    }
    return found;
}

/* ---- unread answers ---- */

static size_t unread_of(const struct control *control, uid_t uid)
{
    const struct connection *connection;
    size_t unread = 0;
    DL_FOREACH(control->connections, connection)
    {
        if (connection->uid == uid)
            unread += connection_unread(connection);
    }
    return unread;
}

/*
 * Find the user with the most unread bytes, and the connection of this user with the most unread bytes.
 * *unread: the total of the user. NULL: none.
 */
static struct connection *find_unread(const struct control *control, size_t *unread)
{
    struct connection *connection, *worst = NULL;
    size_t most = 0;
    *unread = 0;
    DL_FOREACH(control->connections, connection)
    {
        const size_t own = is_own(connection->uid) ? 0 : connection_unread(connection);
        const size_t all = own == 0 ? 0 : unread_of(control, connection->uid);
        *unread += own;
        if (all > most || (all > 0 && all == most && own > connection_unread(worst))) {
            most = all;
            worst = connection;
        }
    }
    return worst;
}

void control_on_shed(void *arg)
{
    struct control *control = arg;
    struct connection *worst;
    size_t unread;
    while ((worst = find_unread(control, &unread)) != NULL && unread > CONTROL_MAX_UNREAD_ALL) {
        if (may_tell(&control->told_shed))
            log_warning("control: %zu bytes of answers are unread: uid %u, which has most of them, loses a "
                        "connection",
                        unread, (unsigned)worst->uid);
        connection_free(worst);
    }
}
