/* control_bounds.c - how much of the daemon those may take who may change nothing. */
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/control/connection.h"
#include "fabricd/util/log.h"

/* Root and the daemon's own user; who else is an administrator is for a name service to say, and would wait.
 */
static bool is_own(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

/* So that the log does not grow with what strangers do. */
static bool may_tell(int64_t *told)
{
    const int64_t now = clock_now(CLOCK_MONOTONIC) / 1000000;
    if (*told != 0 && now - *told < CONTROL_TELL_S)
        return false;
    *told = now;
    return true;
}

/* Some places are kept for those who may change things, and no user has all the others: readers cannot lock
 * anybody out. */
bool control_has_place(struct control *control, uid_t uid)
{
    const struct connection *connection;
    unsigned same = 0;
    DL_FOREACH(control->connections, connection)
    {
        same += connection->uid == uid;
    }
    const unsigned kept = is_own(uid) ? 0 : CONTROL_KEPT;
    const bool full = control->n_connections >= CONTROL_MAX_CONNECTIONS - kept;
    const bool many = !is_own(uid) && same >= CONTROL_MAX_OF_UID;
    if ((full || many) && may_tell(&control->told_full))
        log_warning("control: there are %u connections, of uid %u %u: more are refused",
                    control->n_connections, (unsigned)uid, same);
    return !full && !many;
}

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

/* Of the user with the most, the connection with the most; *unread: of all. NULL: nobody has any. */
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
            log_warning(
                "control: %zu bytes of answers are not read: uid %u, which leaves most, loses a connection",
                unread, (unsigned)worst->uid);
        connection_free(worst);
    }
}
