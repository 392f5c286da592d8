/*
 * guard_connect.c - a connection during its handshake must not block other connections. Its failure must not
 * affect them either (docs/upstream.md, C1 to C7, C11 to C17).
 *
 * The library reads the first message of a new connection with blocking calls, on its only working thread.
 * Here it gets the connection when the message is complete and valid, and its credential is opened
 * (guard_munge.c). If the other side closes before the answer, the answer counts as sent, and the end is
 * noticed a moment later, as for any other connection.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "guard/guard_priv.h"

#define PAUSE_MS 100

/* ---- the listening socket ------------------------------------------------------------------------------ */

static atomic_int handed_over = -1; /* a socket for the library */
static atomic_bool is_handed_over;  /* the library has it */

#if GUARD_KNOWS_LIBRARY
#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>
#include <src/mca/psec/base/base.h>
#include <src/mca/ptl/base/base.h>
#include <src/server/pmix_server_ops.h>

static bool is_listener(int fd)
{
    return fd == pmix_ptl_base.listener.socket;
}
#else
/* The calls that follow, which release the port, do no harm to another socket. */
static bool is_listener(int fd)
{
    (void)fd;
    return true;
}
#endif

#if GUARD_KNOWS_LIBRARY && PMIX_VERSION_MAJOR >= 5
/* The library closes the socket after any error of accept() except that no connection is waiting. Meanwhile
 * its only thread does other work. */
#define ACCEPT_LATER EAGAIN

static void accept_on_pause_over(evutil_socket_t none, short what, void *arg)
{
    (void)none, (void)what, (void)arg;
    if (pmix_ptl_base.listener.active)
        event_add(&pmix_ptl_base.listener.ev, NULL);
}

static void accept_pause(void)
{
    const struct timeval pause = {.tv_usec = PAUSE_MS * 1000};
    if (event_base_once(pmix_globals.evbase, -1, EV_TIMEOUT, accept_on_pause_over, NULL, &pause) == 0)
        event_del(&pmix_ptl_base.listener.ev);
}
#else
/* The library's listener thread ends after any error of accept() except that the other side has closed. Since
 * it has no other work, it would retry at once. */
#define ACCEPT_LATER ECONNABORTED

static void accept_pause(void)
{
    poll(NULL, 0, PAUSE_MS);
}
#endif

static bool accept_is_short(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Return whether the error concerns only the connection that was about to be accepted, or none. */
static bool accept_is_transient(int error)
{
    return error == EPROTO || error == EINTR || error == ECONNABORTED || error == EPERM;
}

/* Connections that are not accepted stay in the kernel's queue. */
static void accept_wait(void)
{
    if (!accept_is_short(errno))
        return;
    guard_log(errno == EMFILE ? "PMIx connections are waiting: this process has no descriptor left: raise "
                                "its limit (LimitNOFILE= of the service)"
                              : "PMIx connections are waiting: this host is short of descriptors or memory");
    accept_pause();
}

/* The kernel keeps the rest of a closed connection for a minute, and blocks its port for the next server
 * unless this option is set. The library sets it only for a configured port. */
static void accept_leaves_port(int fd)
{
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

/* Replaces the system's function for this whole process; it acts differently only for the library's listening
 * socket. */
int accept(int fd, struct sockaddr *restrict address, socklen_t *restrict size)
{
    GUARD_ORIGINAL(accept);
    const int taken = original(fd, address, size);
    if (guard_server() == GUARD_SERVER_OTHER || !is_listener(fd))
        return taken;
    if (taken >= 0)
        accept_leaves_port(taken); /* also for a refused one, which ends at this side */
    if (!guard_does(GUARD_CONNECTIONS))
        return taken;
    if (taken < 0) {
        if (!accept_is_short(errno) && !accept_is_transient(errno))
            return taken;
        accept_wait();
    } else {
        if (connections_admit(taken, guard_serves_user()))
            return taken;
        guard_log(guard_serves_user() ? "a PMIx connection of another user was refused"
                                      : "a PMIx connection was refused: its user or host has too many, or "
                                        "[pmix] foreign_tools excludes its user");
        close(taken);
    }
    errno = ACCEPT_LATER;
    return -1;
}

bool guard_listen_on(int fd)
{
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (!guard_does(GUARD_CONNECTIONS) || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
        !listens)
        return false;
    atomic_store(&handed_over, fd);
    return true;
}

/* The library binds its socket: replace that by the handed-over socket, under the same number. */
int bind(int fd, const struct sockaddr *address, socklen_t size)
{
    GUARD_ORIGINAL(bind);
    const int given = atomic_load(&handed_over);
    if (given < 0 || !is_listener(fd))
        return original(fd, address, size);
    if (dup3(given, fd, O_CLOEXEC) < 0)
        return -1;
    atomic_store(&handed_over, -1);
    atomic_store(&is_handed_over, true);
    return close(given);
}

/* The library shuts its socket down before it closes it, which would affect all processes that have it open.
 */
int shutdown(int fd, int how)
{
    GUARD_ORIGINAL(shutdown);
    return atomic_load(&is_handed_over) && is_listener(fd) ? 0 : original(fd, how);
}

#if GUARD_KNOWS_LIBRARY

#define PATIENCE_S      2    /* seconds for a header, and again for the rest */
#define OPEN_PATIENCE_S 3    /* for the result of a credential, which usually comes much sooner */
#define MAX_WAITING     256  /* connections with an incomplete message; beyond that the oldest is closed */
#define MAX_OPENING     4096 /* connections with a credential being opened, as when a thousand nodes start */

/* ---- check of the first message ------------------------------------------------------------------------ */

/* Return whether the security module is active here, and needs no further messages. munge reads a credential
 * up to its end. PMIx 5.0 and later leak the peer object when authentication fails, so such connections are
 * rejected before the library sees them. */
static bool security_is_sound(const struct first_message *first, bool *munge)
{
    const pmix_psec_module_t *module = pmix_psec_base_assign_module(first->psec);
    *munge = module != NULL && strcmp(module->name, "munge") == 0;
    return module != NULL && module->server_handshake == NULL &&
           (!*munge || (first->credential != NULL && strlen(first->credential) <= MAX_CREDENTIAL)) &&
           (PMIX_VERSION_MAJOR < 5 || first->client || strcmp(module->name, "native") != 0 ||
            first_message_is_native(first));
}

/*
 * A tool that is a process of a job of this server shares the job's record. If the library rejects the
 * tool, it takes this record off its list. It rejects a tool if its user or group is not the registered
 * one.
 */
static bool shares_soundly(const struct first_message *first)
{
    return !guard_serves_user() || !first->started || (first->uid == geteuid() && first->gid == getegid());
}

/* Read the complete message without removing it; free(). NULL: it is invalid. Such a message must not reach
 * the library, which releases the data of a rank twice, or frees the message twice, and trusts lengths. */
static char *connect_message(int sd, struct first_message *first, bool *munge)
{
    pmix_ptl_hdr_t header;
    if (recv(sd, &header, sizeof(header), MSG_PEEK | MSG_DONTWAIT) < (ssize_t)sizeof(header) ||
        header.nbytes > PMIX_MAX_CRED_SIZE)
        return NULL;
    size_t size = sizeof(header) + header.nbytes;
    char *message = malloc(size);
    if (message == NULL ||
        (recv(sd, message, size, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)size &&
         first_message_read(message + sizeof(header), header.nbytes, guard_serves_user(), first) &&
         security_is_sound(first, munge) && shares_soundly(first)))
        return message;
    free(message);
    return NULL;
}

/* ---- the handover to the library ----------------------------------------------------------------------- */

static pmix_server_tool_connection_fn_t host_tool_connected;

/*
 * The connection that the library is reading now. A tool that claims to be started by a server is changed
 * into a tool that brings its name along. Otherwise the library would use one record for a whole namespace.
 * It would alter the record for connected tools, and release it when it rejects the new tool.
 */
static _Thread_local struct {
    int sd;
    unsigned reads; /* the header, and the message */
    const struct first_message *first;
} handing = {.sd = -1};

/* A process of a job of this server shares the job's record. */
static bool connect_shares_record(const struct first_message *first)
{
    return first->started && guard_serves_user();
}

#if PMIX_COUNTS_TOOLS
/* The library counts the namespace of a tool as being on its list, but does not put it there. */
static void connect_own_namespace(const pmix_pending_connection_t *connection, pmix_namespace_t *nptr)
{
    if (connection->nspace_created && !connect_shares_record(handing.first))
        PMIX_RELEASE(nptr); /* the tool has the other reference */
}
#else
static void connect_own_namespace(const pmix_pending_connection_t *connection, pmix_namespace_t *nptr)
{
    (void)connection, (void)nptr;
}
#endif

/* From 5.0.9 on, the library refuses a tool with a name of its own if its list has a namespace of that name.
 * Its storage puts one there for each tool, without data. So hide that name while the library searches. */
static pmix_namespace_t *connect_namesake(const char *name)
{
    pmix_namespace_t *nptr;
    PMIX_LIST_FOREACH(nptr, &pmix_globals.nspaces, pmix_namespace_t)
    if (nptr->nspace != NULL && strcmp(nptr->nspace, name) == 0)
        return nptr;
    return NULL;
}

/*
 * On an error the library takes a tool's namespace off its list, although the namespace is not on the list.
 * From 5.0.9 on this happens for any tool, before 5.0.9 for a tool that another server started. So make the
 * namespace a list of its own until it is put on a list.
 */
static void connect_tool_connected(pmix_info_t *info, size_t n, pmix_tool_connection_cbfunc_t cbfunc,
                                   void *cbdata)
{
    const pmix_pending_connection_t *connection = cbdata;
    const pmix_peer_t *peer = (pmix_peer_t *)connection->peer;
    pmix_list_item_t *item = &peer->nptr->super;
    if (item->pmix_list_next == NULL) {
        item->pmix_list_next = item->pmix_list_prev = item;
        connect_own_namespace(connection, peer->nptr);
    }
    host_tool_connected(info, n, cbfunc, cbdata);
}

pmix_status_t pmix_ptl_base_recv_blocking(int sd, char *data, size_t size)
{
    GUARD_ORIGINAL(pmix_ptl_base_recv_blocking);
    const pmix_status_t rc = original(sd, data, size);
    if (rc == PMIX_SUCCESS && sd == handing.sd && ++handing.reads == 2 && handing.first->started &&
        !connect_shares_record(handing.first) && handing.first->kind_at < size)
        data[handing.first->kind_at]--;
    return rc;
}

/* Find the library's data of a process that is about to connect; NULL: none. */
static pmix_rank_info_t *connect_find_process(const struct first_message *first, pmix_namespace_t **nptr)
{
    pmix_rank_info_t *info;
    PMIX_LIST_FOREACH(*nptr, &pmix_globals.nspaces, pmix_namespace_t)
    if (strcmp((*nptr)->nspace, first->nspace) == 0)
        PMIX_LIST_FOREACH(info, &(*nptr)->ranks, pmix_rank_info_t)
    if (info->pname.rank == first->rank)
        return info;
    return NULL;
}

/*
 * Pass on a client of this server's own jobs. If the library rejects it, it releases the data of the
 * process twice. It also keeps values from the rejected message in the process and in its job.
 */
static void hand_over_client(void (*original)(int, short, void *), pmix_pending_connection_t *connection,
                             const struct first_message *first)
{
    pmix_namespace_t *nptr;
    pmix_rank_info_t *info = connect_find_process(first, &nptr);
    if (info == NULL) {
        original(-1, EV_WRITE, connection);
        return;
    }
    const pmix_personality_t compat = nptr->compat;
    const int32_t references = info->super.super.obj_reference_count;
    const int index = info->peerid;
    PMIX_RETAIN(info);
    original(-1, EV_WRITE, connection);
    if (info->super.super.obj_reference_count > references) {
        PMIX_RELEASE(info);
        return;
    }
    info->peerid = index;
    nptr->compat = compat;
}

/* first: NULL if there is no valid message. */
static void hand_over_tool(void (*original)(int, short, void *), pmix_pending_connection_t *connection,
                           const struct first_message *first)
{
    const bool named =
        PMIX_COUNTS_TOOLS && first != NULL && first->nspace != NULL && !connect_shares_record(first);
    pmix_namespace_t *namesake = named ? connect_namesake(first->nspace) : NULL;
    char *name = namesake == NULL ? NULL : namesake->nspace, none[] = "";
    if (namesake != NULL)
        namesake->nspace = none;
    original(-1, EV_WRITE, connection);
    if (namesake != NULL)
        namesake->nspace = name;
}

/* Let the library read, which does not block now, or find the end of the connection and clean up. */
static void hand_over(pmix_pending_connection_t *connection)
{
    GUARD_ORIGINAL(pmix_ptl_base_connection_handler);
    struct first_message first;
    bool munge;
    if (!guard_does(GUARD_CONNECTIONS)) {
        original(-1, EV_WRITE, connection);
        return;
    }
    char *message = connect_message(connection->sd, &first, &munge);
    if (message == NULL)
        guard_end_connection(connection->sd);
    else
        handing.sd = connection->sd, handing.first = &first, handing.reads = 0;
    host_tool_connected = pmix_host_server.tool_connected;
    if (host_tool_connected != NULL)
        pmix_host_server.tool_connected = connect_tool_connected;
    if (message != NULL && first.client)
        hand_over_client(original, connection, &first);
    else
        hand_over_tool(original, connection, message != NULL ? &first : NULL);
    pmix_host_server.tool_connected = host_tool_connected;
    handing.sd = -1;
    free(message);
}

/* ---- waiting connections: all on the library's thread -------------------------------------------------- */

/* A connection whose message is incomplete, or whose credential is being opened. */
struct waiting {
    struct waiting *prev, *next;
    pmix_pending_connection_t *connection;
    struct event *event;
    int need;          /* number of bytes to wait for */
    uint32_t number;   /* of its credential; 0: waits for its message */
    uint32_t uid, gid; /* as claimed, with a credential */
};

struct waiting_list {
    struct waiting *first; /* the oldest */
    unsigned n, max;
};
static struct waiting_list for_message = {.max = MAX_WAITING}, for_opening = {.max = MAX_OPENING};

static void hand_over_or_open(pmix_pending_connection_t *connection);

/* The socket becomes readable with so many bytes, or at its end. */
static int wait_for_bytes(int sd, int bytes)
{
    return setsockopt(sd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

static void stop_waiting(struct waiting *w, bool give_up)
{
    pmix_pending_connection_t *connection = w->connection;
    const bool was_opened = w->number != 0;
    struct waiting_list *list = was_opened ? &for_opening : &for_message;
    DL_DELETE(list->first, w);
    list->n--;
    event_free(w->event);
    free(w);
    wait_for_bytes(connection->sd, 1);
    if (give_up)
        guard_end_connection(connection->sd);
    if (give_up || was_opened)
        hand_over(connection);
    else
        hand_over_or_open(connection);
}

/* NULL: no memory. fd -1: wait for the timeout only. */
static struct waiting *connect_wait(pmix_pending_connection_t *connection, struct waiting_list *list, int fd,
                                    event_callback_fn fn)
{
    struct waiting *w = calloc(1, sizeof(*w));
    if (w != NULL)
        w->event = event_new(pmix_globals.evbase, fd, fd >= 0 ? EV_READ : 0, fn, w);
    if (w == NULL || w->event == NULL) {
        free(w);
        return NULL;
    }
    w->connection = connection;
    DL_APPEND(list->first, w);
    list->n++;
    return w;
}

static void waiting_bound(struct waiting_list *list)
{
    if (list->n > list->max)
        stop_waiting(list->first, true);
}

/* ---- waiting for its credential */

static void connect_on_opened(uint32_t number, bool good, uid_t uid, gid_t gid)
{
    struct waiting *w;
    DL_SEARCH_SCALAR(for_opening.first, w, number, number);
    if (w != NULL)
        stop_waiting(w, !good || uid != w->uid || gid != w->gid || !connections_admits(uid));
}

static void connect_on_impatience(evutil_socket_t sd, short what, void *arg)
{
    struct waiting *w = arg;
    (void)sd, (void)what;
    credential_forget(w->number);
    stop_waiting(w, true);
}

static void connect_open(pmix_pending_connection_t *connection, const struct first_message *first)
{
    static uint32_t last;
    const struct timeval patience = {.tv_sec = OPEN_PATIENCE_S};
    struct waiting *w = connect_wait(connection, &for_opening, -1, connect_on_impatience);
    if (w == NULL) {
        guard_end_connection(connection->sd);
        hand_over(connection);
        return;
    }
    last += last == UINT32_MAX ? 2 : 1; /* never 0 */
    w->number = last;
    w->uid = first->uid;
    w->gid = first->gid;
    if (event_add(w->event, &patience) != 0 || !credential_open(last, first->credential, connect_on_opened))
        stop_waiting(w, true);
    else
        waiting_bound(&for_opening);
}

/* The message is complete. */
static void hand_over_or_open(pmix_pending_connection_t *connection)
{
    struct first_message first;
    bool munge = false;
    char *message = credentials_are_opened() ? connect_message(connection->sd, &first, &munge) : NULL;
    if (message != NULL && munge)
        connect_open(connection, &first);
    else
        hand_over(connection);
    free(message);
}

/* ---- waiting for its message */

/* Return the number of bytes of the first message to wait for before the library may read it; 0: it may. */
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
    return wait_for_bytes(w->connection->sd, w->need) == 0 && event_add(w->event, &patience) == 0;
}

/* More bytes have arrived, or the end of the connection, or the timeout. */
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
    struct waiting *w = connect_wait(connection, &for_message, connection->sd, connect_on_readable);
    if (w == NULL) {
        guard_end_connection(connection->sd);
        hand_over(connection);
        return;
    }
    w->need = need;
    if (!wait_on(w))
        stop_waiting(w, true);
    else
        waiting_bound(&for_message);
}

void pmix_ptl_base_connection_handler(int sd, short args, void *cbdata)
{
    pmix_pending_connection_t *connection = cbdata;
    (void)sd, (void)args;
    guard_on_library_thread = true;
    const bool done = guard_does(GUARD_CONNECTIONS);
    const int need = done ? connect_bytes_needed(connection->sd) : 0;
    if (need > 0)
        start_waiting(connection, need);
    else if (done)
        hand_over_or_open(connection);
    else
        hand_over(connection);
}

/*
 * Sends the first bytes on a connection of either kind. Also called on the way to another server, where a
 * missing answer shows the same. Messages are sent at once, without waiting for the acknowledgement of the
 * one before.
 */
pmix_status_t pmix_ptl_base_send_blocking(int sd, char *ptr, size_t size)
{
    GUARD_ORIGINAL(pmix_ptl_base_send_blocking);
    const int on = 1;
    if (!guard_does(GUARD_CONNECTIONS))
        return original(sd, ptr, size);
    setsockopt(sd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* an optimisation; errors do not matter */
    original(sd, ptr, size);
    return PMIX_SUCCESS;
}

#endif
