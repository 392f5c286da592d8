/*
 * repair_connect.c - a connection that is being made holds nobody up, and when it breaks only itself breaks.
 *
 * The library reads the first message of a new connection with blocking calls, on the thread that does
 * everything: who connects and says nothing stops the server for as long as he likes. Here the library gets
 * the connection when its message is there as a whole. And where the other side is gone before it was
 * answered, the library takes a namespace off a list that it never put it on: a tool that is interrupted at
 * the wrong moment ends the server. Here the answer counts as sent, and the end of the connection is noticed
 * a moment later, as that of any other.
 * What is said on a connection later is not held back either: see send_at_once().
 */
#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <utlist.h>

#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>
#include <src/mca/psec/base/base.h>
#include <src/mca/ptl/base/base.h>
#include <src/server/pmix_server_ops.h>

#include "mca/door/first_message.h"
#include "mca/door/working.h"
#include "mca/repairs/repair.h"
#include "mca/repairs/repair_peer.h"

#include <pmix_version.h>

#if PMIX_VERSION_MAJOR == 4 && PMIX_VERSION_MINOR == 2

#define PATIENCE_S  2   /* for a header, and again for what follows it */
#define MAX_WAITING 256 /* connections that have not said all; then the oldest goes */

/* A connection whose message is not there yet. All of this happens on the library's thread. */
struct waiting {
    struct waiting *prev, *next;
    pmix_pending_connection_t *connection;
    struct event *event;
    int need; /* bytes that are waited for */
};

static struct waiting *all;
static unsigned n_waiting;

/* A module of that name is active here, and one that does not wait for more from the other side. */
static bool security_is_known(const char *names)
{
    const pmix_psec_module_t *module = pmix_psec_base_assign_module(names);
    return module != NULL && module->server_handshake == NULL;
}

/* Look at the message that is there as a whole, without taking it. What is not sound must not reach the
 * library: it releases twice what it knows of a rank, or frees the message twice, and believes lengths. */
static bool connect_is_sound(int sd, struct first_message *first)
{
    pmix_ptl_hdr_t header;
    if (recv(sd, &header, sizeof(header), MSG_PEEK | MSG_DONTWAIT) < (ssize_t)sizeof(header) ||
        header.nbytes > PMIX_MAX_CRED_SIZE)
        return false;
    size_t size = sizeof(header) + header.nbytes;
    char *message = malloc(size);
    if (message == NULL)
        return false;
    bool sound = recv(sd, message, size, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)size &&
                 first_message_read(message + sizeof(header), header.nbytes, first) &&
                 security_is_known(first->psec);
    free(message);
    return sound;
}

static pmix_server_tool_connection_fn_t host_tool_connected;

/* The namespace of a tool that another server started is not on the library's list, but taken off it on an
 * error. Now it is a list of its own until it is put on one. */
static void connect_tool_connected(pmix_info_t *info, size_t n, pmix_tool_connection_cbfunc_t cbfunc,
                                   void *cbdata)
{
    const pmix_pending_connection_t *connection = cbdata;
    const pmix_peer_t *peer = (pmix_peer_t *)connection->peer;
    pmix_list_item_t *item = &peer->nptr->super;
    if (item->pmix_list_next == NULL)
        item->pmix_list_next = item->pmix_list_prev = item;
    host_tool_connected(info, n, cbfunc, cbdata);
}

/*
 * What the library reads now. A tool that says that a server has started it is taken as one that brings its
 * name along: the library would else use one record for all of a namespace, alter it for those who are
 * connected already, and release it when the newcomer is refused.
 */
static _Thread_local struct {
    int sd;
    unsigned reads; /* the header, and the message */
    const struct first_message *first;
} handing = {.sd = -1};

pmix_status_t pmix_ptl_base_recv_blocking(int sd, char *data, size_t size)
{
    pmix_status_t (*original)(int, char *, size_t) = NULL;
    *(void **)&original = fab_repair_original(__func__);
    pmix_status_t rc = original == NULL ? PMIX_ERR_NOT_SUPPORTED : original(sd, data, size);
    if (rc == PMIX_SUCCESS && sd == handing.sd && ++handing.reads == 2 && handing.first->kind_at < size)
        data[handing.first->kind_at]--;
    return rc;
}

/* The library's turn: it reads without waiting, or finds the end of the connection and cleans up. */
static void hand_over(pmix_pending_connection_t *connection)
{
    void (*original)(int, short, void *) = NULL;
    *(void **)&original = fab_repair_original("pmix_ptl_base_connection_handler");
    if (original == NULL)
        return;
    if (!fab_repair_wanted()) {
        original(-1, EV_WRITE, connection);
        return;
    }
    struct first_message first;
    working_on(connection->sd, -1);
    if (!connect_is_sound(connection->sd, &first))
        repair_end_connection(connection->sd);
    else if (first.started)
        handing.sd = connection->sd, handing.first = &first, handing.reads = 0;
    host_tool_connected = pmix_host_server.tool_connected;
    if (host_tool_connected != NULL)
        pmix_host_server.tool_connected = connect_tool_connected;
    original(-1, EV_WRITE, connection);
    pmix_host_server.tool_connected = host_tool_connected;
    handing.sd = -1;
    working_ended();
}

static void stop_waiting(struct waiting *w, bool give_up)
{
    pmix_pending_connection_t *connection = w->connection;
    DL_DELETE(all, w);
    n_waiting--;
    event_free(w->event);
    free(w);
    repair_wait_for_bytes(connection->sd, 1);
    if (give_up)
        repair_end_connection(connection->sd);
    hand_over(connection);
}

/* Bytes of the first message that must be there before the library may read it; 0: it may. */
static int connect_bytes_needed(int sd)
{
    pmix_ptl_hdr_t header;
    int there = 0;
    ssize_t n = recv(sd, &header, sizeof(header), MSG_PEEK | MSG_DONTWAIT);
    if (n < (ssize_t)sizeof(header))
        return n == 0 ? 0 : (int)sizeof(header);
    if (header.nbytes > PMIX_MAX_CRED_SIZE)
        return 0; /* the library refuses it */
    int whole = (int)(sizeof(header) + header.nbytes);
    return ioctl(sd, FIONREAD, &there) != 0 || there >= whole ? 0 : whole;
}

static int wait_on(struct waiting *w)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    return repair_wait_for_bytes(w->connection->sd, w->need) == 0 && event_add(w->event, &patience) == 0;
}

/* More than was waited for, the end of the connection, or of the patience. */
static void connect_on_readable(evutil_socket_t sd, short what, void *arg)
{
    struct waiting *w = arg;
    int before = w->need;
    w->need = what & EV_TIMEOUT ? before : connect_bytes_needed(sd);
    if (w->need == 0)
        stop_waiting(w, false);
    else if (w->need == before || !wait_on(w))
        stop_waiting(w, true);
}

static void start_waiting(pmix_pending_connection_t *connection, int need)
{
    struct waiting *w = calloc(1, sizeof(*w));
    if (w != NULL)
        w->event = event_new(pmix_globals.evbase, connection->sd, EV_READ, connect_on_readable, w);
    if (w == NULL || w->event == NULL) {
        free(w);
        repair_end_connection(connection->sd);
        hand_over(connection);
        return;
    }
    w->connection = connection;
    w->need = need;
    DL_APPEND(all, w);
    n_waiting++;
    if (!wait_on(w))
        stop_waiting(w, true);
    else if (n_waiting > MAX_WAITING)
        stop_waiting(all, true);
}

void pmix_ptl_base_connection_handler(int sd, short args, void *cbdata)
{
    pmix_pending_connection_t *connection = cbdata;
    (void)sd, (void)args;
    repair_on_library_thread = true;
    int need = fab_repair_wanted() ? connect_bytes_needed(connection->sd) : 0;
    if (need == 0)
        hand_over(connection);
    else
        start_waiting(connection, need);
}

/* Each message goes out at once, and not when the other side's kernel has acknowledged the one before it. */
static void send_at_once(int sd)
{
    const int on = 1;
    setsockopt(sd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* without it all is right, and later */
}

/*
 * The first word on a connection of either kind. Also called on the way to another server: there the answer
 * that does not come tells the same.
 */
pmix_status_t pmix_ptl_base_send_blocking(int sd, char *ptr, size_t size)
{
    pmix_status_t (*original)(int, char *, size_t) = NULL;
    *(void **)&original = fab_repair_original(__func__);
    if (fab_repair_wanted())
        send_at_once(sd);
    pmix_status_t rc = original == NULL ? PMIX_ERR_NOT_SUPPORTED : original(sd, ptr, size);
    return fab_repair_wanted() ? PMIX_SUCCESS : rc;
}

#endif
