/*
 * guard_clients.c - limit the bytes that connected clients may send and the messages that reach the library.
 * Handle the end of a client, and the receivers of an event (docs/upstream.md, M1 to M10, C2, C17, R4, R8,
 * R11, R18).
 *
 * The library allocates as much as the first bytes of a message announce, and never frees the part of a
 * message whose connection is lost. If a message of a tool has the same tag, the library treats it as the
 * answer of its own server. The library unpacks the contents of each known command, and trusts each count.
 * Here a message is limited to the longest that fabricd uses, and a command must be one that fabricd answers.
 *
 * When a handshake fails, the library closes the connection's descriptor twice. If another thread gets its
 * number in between, that thread loses its new descriptor. Here the number stays in use until the library has
 * closed it finally. The library also keeps all data of each tool that ever connected.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guard/guard_priv.h"
#include "topo/model/delivery.h"

_Thread_local bool guard_on_library_thread;
static void (*_Atomic left_fn)(const pmix_proc_t *proc);

void guard_on_left(void (*fn)(const pmix_proc_t *proc))
{
    atomic_store(&left_fn, fn);
}

#if GUARD_KNOWS_LIBRARY
#include <src/include/pmix_config.h>

#include <src/class/pmix_pointer_array.h>
#include <src/client/pmix_client_ops.h>
#include <src/event/pmix_event.h>
#include <src/include/pmix_globals.h>
#include <src/mca/bfrops/base/base.h>
#include <src/mca/gds/base/base.h>
#include <src/mca/ptl/base/base.h>
#include <src/server/pmix_server_ops.h>

/* A host's report in its credential, where 3 bytes take 4, and the rest of the message. */
#define MOST_BYTES ((uint32_t)2 * FAB_DELIVERY_MAX + 131072)

#define OWN_MOST_BYTES    ((uint32_t)1 << 30) /* of the user's own client or tool */
#define MOST_UNREAD       16384               /* unread answers of a connection */
#define MOST_UNREAD_BYTES ((size_t)64 << 20)
#define LOOK_AT_ALL       16 /* check all once in so many requests */

/* ---- descriptors --------------------------------------------------------------------------------- */

static int clients_close(int fd)
{
    static int (*_Atomic original)(int); /* the same for all callers */
    int (*found)(int) = atomic_load(&original);
    if (found == NULL) {
        *(void **)&found = guard_original("close");
        atomic_store(&original, found);
    }
    return found(fd);
}

static void leave_on_end(evutil_socket_t none, short what, void *arg)
{
    const int fd = (int)(intptr_t)arg;
    (void)none, (void)what;
    connections_forget(fd);
    clients_close(fd);
}

/* Replaces the system's function for this whole process; it acts differently only for connections that
 * accept() has admitted. */
int close(int fd)
{
    const struct timeval at_once = {0};
    switch (connections_close(fd)) {
    case CONNECTIONS_AGAIN:
        return 0;
    case CONNECTIONS_FIRST:
        if (guard_on_library_thread && pmix_globals.evbase != NULL &&
            event_base_once(pmix_globals.evbase, -1, EV_TIMEOUT, leave_on_end, (void *)(intptr_t)fd,
                            &at_once) == 0)
            return 0;
        connections_forget(fd);
        break;
    case CONNECTIONS_OTHER:
        break;
    }
    return clients_close(fd);
}

/* ---- the library's data of a tool ---------------------------------------------------------------- */

static bool leave_is_known(const pmix_namespace_t *nptr)
{
    const pmix_namespace_t *other;
    PMIX_LIST_FOREACH(other, &pmix_globals.nspaces, pmix_namespace_t)
    if (other == nptr)
        return true;
    return false;
}

/* Return whether only the library's storage has put it on the list, without any data. */
static bool leave_is_left_over(const pmix_namespace_t *nptr)
{
    return nptr->nprocs == 0 && nptr->nlocalprocs == SIZE_MAX && !nptr->all_registered &&
           pmix_list_is_empty((pmix_list_t *)&nptr->ranks);
}

static bool leave_is_used(const char *nspace)
{
    const pmix_namespace_t *other;
    PMIX_LIST_FOREACH(other, &pmix_globals.nspaces, pmix_namespace_t)
    if (other->nspace != NULL && strcmp(other->nspace, nspace) == 0 && !leave_is_left_over(other))
        return true;
    for (int i = 0; i < pmix_server_globals.clients.size; i++) {
        const pmix_peer_t *peer = pmix_pointer_array_get_item(&pmix_server_globals.clients, i);
        if (peer != NULL && peer->info != NULL && strcmp(peer->info->pname.nspace, nspace) == 0)
            return true;
    }
    return strcmp(nspace, pmix_globals.myid.nspace) == 0;
}

/* Remove a namespace without connections. */
static void leave_forget_namespace(const char *nspace)
{
    pmix_namespace_t *nptr, *next;
    pmix_status_t rc;
    PMIX_GDS_DEL_NSPACE(rc, nspace);
    (void)rc; /* ignored: it may not exist */
    PMIX_LIST_FOREACH_SAFE(nptr, next, &pmix_globals.nspaces, pmix_namespace_t)
    if (nptr->nspace != NULL && strcmp(nptr->nspace, nspace) == 0) {
        pmix_list_remove_item(&pmix_globals.nspaces, &nptr->super);
        PMIX_RELEASE(nptr);
    }
}

/* Return whether another connection has the same name. */
static bool leave_has_namesake(const pmix_peer_t *peer, const pmix_proc_t *name)
{
    for (int i = 0; i < pmix_server_globals.clients.size; i++) {
        const pmix_peer_t *other = pmix_pointer_array_get_item(&pmix_server_globals.clients, i);
        if (other != NULL && other != peer && other->sd >= 0 && other->info != NULL &&
            other->info->pname.rank == name->rank && strcmp(other->info->pname.nspace, name->nspace) == 0)
            return true;
    }
    return false;
}

static void leave_tell(const pmix_peer_t *peer)
{
    pmix_proc_t name;
    PMIX_LOAD_PROCID(&name, peer->info->pname.nspace, peer->info->pname.rank);
    void (*fn)(const pmix_proc_t *) = atomic_load(&left_fn);
    if (fn != NULL && !leave_has_namesake(peer, &name))
        fn(&name);
}

/* Return whether it is a process of a registered job: the library counts it until the job is deregistered. */
static bool leave_is_of_job(const pmix_peer_t *peer)
{
    return peer->nptr->all_registered && leave_is_known(peer->nptr);
}

static void leave_on_lost(evutil_socket_t none, short what, void *arg)
{
    pmix_peer_t *peer = arg;
    pmix_namespace_t *nptr = peer->nptr;
    pmix_proc_t name;
    (void)none, (void)what;
    PMIX_LOAD_PROCID(&name, peer->info->pname.nspace, peer->info->pname.rank);
    leave_tell(peer);
    if (pmix_pointer_array_get_item(&pmix_server_globals.clients, peer->index) == peer) {
        pmix_pointer_array_set_item(&pmix_server_globals.clients, peer->index, NULL);
        PMIX_RELEASE(peer);
        if (leave_is_known(nptr)) {
            pmix_list_remove_item(&pmix_globals.nspaces, &nptr->super);
            PMIX_RELEASE(nptr);
        }
        if (!leave_is_used(name.nspace))
            leave_forget_namespace(name.nspace);
    }
    peer = arg;
    PMIX_RELEASE(peer); /* NOLINT(clang-analyzer-unix.Malloc): there were two references */
}

/* The library collects lost connections in one event, and copies it for each further one: with thousands of
 * them this takes seconds. It also caches the event for a new connection of the same name, which would be
 * told that its connection is lost. Here each has its own event, which is not cached. */
static void leave_let_event_go(void)
{
    pmix_event_chain_t *event, *next;
    PMIX_LIST_FOREACH_SAFE(event, next, &pmix_globals.cached_events, pmix_event_chain_t)
    if (event->status == PMIX_ERR_LOST_CONNECTION) {
        event_del(&event->ev);
        if (event->ninfo == 0 && event->nallocated > 0) {
            PMIX_INFO_LOAD(&event->info[0], PMIX_EVENT_DO_NOT_CACHE, NULL, PMIX_BOOL);
            event->ninfo = 1;
        }
        pmix_event_timeout_cb(-1, EV_TIMEOUT, event);
    }
}

static void clients_lost(pmix_peer_t *peer)
{
    const struct timeval at_once = {0};
    leave_let_event_go();
    if (leave_is_of_job(peer)) {
        leave_tell(peer);
        return;
    }
    PMIX_RETAIN(peer);
    if (event_base_once(pmix_globals.evbase, -1, EV_TIMEOUT, leave_on_lost, peer, &at_once) != 0)
        PMIX_RELEASE(peer);
}

void guard_job_forgotten(const char *nspace)
{
    for (int i = 0; i < pmix_server_globals.clients.size; i++) {
        pmix_peer_t *peer = pmix_pointer_array_get_item(&pmix_server_globals.clients, i);
        if (peer == NULL || peer->sd >= 0 || peer->info == NULL || leave_is_known(peer->nptr) ||
            strcmp(peer->info->pname.nspace, nspace) != 0)
            continue;
        pmix_pointer_array_set_item(&pmix_server_globals.clients, i, NULL);
        PMIX_RELEASE(peer);
    }
}

/* Return whether the peer has connected to this server; not a server that this one has connected to, and not
 * itself. */
static bool receive_is_connected(const pmix_peer_t *peer)
{
    return peer != NULL && peer != pmix_globals.mypeer && peer != pmix_client_globals.myserver &&
           (peer->proc_type.type & (PMIX_PROC_CLIENT | PMIX_PROC_TOOL)) != 0;
}

/* A server of one user has no external clients. */
static bool receive_is_from_outside(const pmix_peer_t *peer)
{
    return !guard_serves_user() && receive_is_connected(peer);
}

/* ---- receiving a message ------------------------------------------------------------------------- */

/* The header is complete: allocate the announced size. No page is touched before data arrive. */
static bool receive_begin_data(int sd, pmix_ptl_recv_t *msg)
{
    const bool own = guard_serves_user();
    msg->hdr.pindex = (int32_t)ntohl((uint32_t)msg->hdr.pindex);
    msg->hdr.tag = ntohl(msg->hdr.tag);
    msg->hdr.nbytes = ntohl(msg->hdr.nbytes);
    const uint32_t n = msg->hdr.nbytes;
    if (own ? n > OWN_MOST_BYTES : n == 0 || n > MOST_BYTES || !connections_take(sd, n)) {
        guard_log("a message of a tool was refused: it announces more bytes than any that fabricd needs, or "
                  "its user has too many unfinished ones");
        return false;
    }
    msg->data = n == 0 ? NULL : malloc(n);
    msg->rdptr = msg->data;
    msg->rdbytes = n;
    msg->hdr_recvd = n == 0 || msg->data != NULL;
    return msg->hdr_recvd;
}

/* The library rejects a header that arrives in pieces. True: the library continues, with the data or with the
 * end of the connection. */
static bool receive_header(int sd, pmix_ptl_recv_t *msg)
{
    ssize_t n = recv(sd, msg->rdptr, msg->rdbytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0)
        return true;
    msg->rdptr += n;
    msg->rdbytes -= (size_t)n;
    if (msg->rdbytes > 0)
        return false;
    if (!receive_begin_data(sd, msg))
        guard_end_connection(sd);
    return true;
}

/* Allocate it as the library does, so that it can be freed here when the library drops it. */
static pmix_ptl_recv_t *receive_begin(pmix_peer_t *peer)
{
    pmix_ptl_recv_t *msg = PMIX_NEW(pmix_ptl_recv_t);
    if (msg == NULL)
        return NULL;
    PMIX_RETAIN(peer);
    msg->peer = (struct pmix_peer_t *)peer;
    msg->rdptr = (char *)&msg->hdr;
    msg->rdbytes = sizeof(msg->hdr);
    return msg;
}

void pmix_ptl_base_recv_handler(int sd, short flags, void *cbdata)
{
    GUARD_ORIGINAL(pmix_ptl_base_recv_handler);
    pmix_peer_t *peer = cbdata;
    if (!guard_does(GUARD_CONNECTIONS) || !receive_is_connected(peer)) {
        original(sd, flags, cbdata);
        return;
    }
    if (peer->recv_msg == NULL)
        peer->recv_msg = receive_begin(peer);
    pmix_ptl_recv_t *msg = peer->recv_msg;
    if (msg == NULL || (!msg->hdr_recvd && !receive_header(sd, msg)))
        return;
    PMIX_RETAIN(msg);
    original(sd, flags, cbdata);
    if (peer->sd < 0) { /* connection and message are lost */
        free(msg->data);
        msg->data = NULL;
        clients_lost(peer);
    }
    PMIX_RELEASE(msg);
}

/* A failed send also reports the end of a connection to the library. */
void pmix_ptl_base_send_handler(int sd, short flags, void *cbdata)
{
    GUARD_ORIGINAL(pmix_ptl_base_send_handler);
    pmix_peer_t *peer = cbdata;
    if (!guard_does(GUARD_CONNECTIONS) || !receive_is_connected(peer)) {
        original(sd, flags, cbdata);
        return;
    }
    pmix_ptl_recv_t *half = peer->recv_msg;
    PMIX_RETAIN(peer);
    if (half != NULL)
        PMIX_RETAIN(half);
    original(sd, flags, cbdata);
    if (peer->sd < 0 && half != NULL) { /* lost with the connection */
        free(half->data);
        half->data = NULL;
    }
    if (peer->sd < 0)
        clients_lost(peer);
    if (half != NULL)
        PMIX_RELEASE(half);
    PMIX_RELEASE(peer);
}

/* ---- a complete message --------------------------------------------------------------------------- */

/* Send an answer without data; a register's status is ignored by its caller, as described in
 * guard_requests.c. */
static void receive_answer(pmix_peer_t *peer, uint32_t tag, uint8_t command, pmix_status_t status)
{
    pmix_buffer_t *reply = PMIX_NEW(pmix_buffer_t);
    pmix_status_t rc = PMIX_SUCCESS;
    if (reply == NULL)
        return;
    if (command != PMIX_FABRIC_REGISTER_CMD)
        PMIX_BFROPS_PACK(rc, peer, reply, &status, 1, PMIX_STATUS);
    if (rc == PMIX_SUCCESS)
        PMIX_SERVER_QUEUE_REPLY(rc, peer, tag, reply);
    if (rc != PMIX_SUCCESS)
        PMIX_RELEASE(reply);
}

static size_t receive_size(const pmix_ptl_send_t *answer)
{
    return answer == NULL || answer->data == NULL ? 0 : answer->data->bytes_used;
}

/* Return the unread bytes of a connection's answers. */
static size_t receive_unread(pmix_peer_t *peer)
{
    const pmix_ptl_send_t *unread;
    size_t bytes = receive_size(peer->send_msg);
    PMIX_LIST_FOREACH(unread, &peer->send_queue, pmix_ptl_send_t)
    bytes += receive_size(unread);
    return bytes;
}

static bool receive_is_too_much(pmix_peer_t *peer, size_t bytes)
{
    return bytes > MOST_UNREAD_BYTES || !connections_unread(peer->sd, bytes);
}

/* Return whether the peer sends requests and does not read the answers. */
static bool receive_reads_nothing(pmix_peer_t *peer)
{
    const pmix_ptl_send_t *last = (pmix_ptl_send_t *)pmix_list_get_last(&peer->send_queue);
    const size_t n = pmix_list_get_size(&peer->send_queue);
    if (n > MOST_UNREAD)
        return true;
    /* Count exactly only if the estimate, all as large as the last one, is too much. */
    const size_t about = receive_size(peer->send_msg) + (n == 0 ? 0 : receive_size(last) * n);
    return receive_is_too_much(peer, about) && receive_is_too_much(peer, receive_unread(peer));
}

static void receive_end_silent(pmix_peer_t *peer)
{
    guard_log("a tool was disconnected: it sends requests and does not read the answers");
    guard_end_connection(peer->sd);
}

/* Check all connections from time to time: answers sent since a connection's last request count, too. */
static void receive_look_at_all(void)
{
    static unsigned asked;
    if (++asked % LOOK_AT_ALL != 0)
        return;
    for (int i = 0; i < pmix_server_globals.clients.size; i++) {
        pmix_peer_t *peer = pmix_pointer_array_get_item(&pmix_server_globals.clients, i);
        if (receive_is_from_outside(peer) && peer->sd >= 0 && receive_reads_nothing(peer)) {
            receive_end_silent(peer);
            connections_unread(peer->sd, 0);
        }
    }
}

/*
 * Register only events that fabricd raises, and each once. The library stores a registered code each time,
 * and searches all codes for each further one. It then sends an event once for each entry.
 */
static void receive_events(pmix_peer_t *peer, pmix_ptl_hdr_t *header, const struct request *request)
{
    const bool on = request->command == PMIX_REGEVENTS_CMD;
    const unsigned events = connections_set_events(peer->sd, request->events, on);
    pmix_cmd_t command = request->command;
    pmix_status_t codes[2], rc;
    size_t n = 0, n_infos = 0;
    pmix_buffer_t buf;
    if (events & REQUEST_PENDING)
        codes[n++] = PMIX_FABRIC_UPDATE_PENDING;
    if (events & REQUEST_UPDATED)
        codes[n++] = PMIX_FABRIC_UPDATED;
    if (n == 0) {
        if (on)
            receive_answer(peer, header->tag, request->command, PMIX_SUCCESS);
        return;
    }
    PMIX_CONSTRUCT(&buf, pmix_buffer_t);
    PMIX_BFROPS_PACK(rc, peer, &buf, &command, 1, PMIX_COMMAND);
    if (rc == PMIX_SUCCESS && on)
        PMIX_BFROPS_PACK(rc, peer, &buf, &n, 1, PMIX_SIZE);
    if (rc == PMIX_SUCCESS && on)
        PMIX_BFROPS_PACK(rc, peer, &buf, codes, (int32_t)n, PMIX_STATUS);
    for (size_t i = 0; i < n && !on && rc == PMIX_SUCCESS; i++)
        PMIX_BFROPS_PACK(rc, peer, &buf, &codes[i], 1, PMIX_STATUS);
    if (rc == PMIX_SUCCESS && on)
        PMIX_BFROPS_PACK(rc, peer, &buf, &n_infos, 1, PMIX_SIZE);
    if (rc == PMIX_SUCCESS)
        pmix_server_message_handler((struct pmix_peer_t *)peer, header, &buf, NULL);
    else
        guard_end_connection(peer->sd);
    PMIX_DESTRUCT(&buf);
}

static void receive_dispatch(pmix_peer_t *peer, pmix_ptl_hdr_t *header, pmix_buffer_t *buf)
{
    struct request request;
    if (peer->finalized || peer->sd < 0)
        return; /* it has finalized, and gets no answer */
    receive_look_at_all();
    if (receive_reads_nothing(peer)) {
        receive_end_silent(peer);
        return;
    }
    pmix_status_t rc =
        request_check(buf->unpack_ptr, buf->bytes_used, buf->type == PMIX_BFROP_BUFFER_FULLY_DESC, &request);
    if (rc == PMIX_SUCCESS &&
        (request.command == PMIX_REGEVENTS_CMD || request.command == PMIX_DEREGEVENTS_CMD))
        receive_events(peer, header, &request);
    else if (rc == PMIX_SUCCESS)
        pmix_server_message_handler((struct pmix_peer_t *)peer, header, buf, NULL);
    else
        receive_answer(peer, header->tag, request.command, rc);
}

void pmix_ptl_base_process_msg(int fd, short flags, void *cbdata)
{
    GUARD_ORIGINAL(pmix_ptl_base_process_msg);
    pmix_ptl_recv_t *msg = cbdata;
    pmix_peer_t *peer = (pmix_peer_t *)msg->peer;
    pmix_buffer_t buf;
    if (!guard_does(GUARD_CONNECTIONS) || !receive_is_from_outside(peer)) {
        original(fd, flags, cbdata);
        return;
    }
    PMIX_CONSTRUCT(&buf, pmix_buffer_t);
    PMIX_LOAD_BUFFER(peer, &buf, msg->data, msg->hdr.nbytes);
    msg->data = NULL;
    connections_give(peer->sd, buf.bytes_used);
    receive_dispatch(peer, &msg->hdr, &buf);
    PMIX_DESTRUCT(&buf);
    PMIX_RELEASE(msg);
}

/* ---- events: an event for a namespace lists its targets, the only range that the library checks ---- */

static bool notify_has_targets(const pmix_info_t info[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_CUSTOM_RANGE))
            return true;
    return false;
}

pmix_status_t pmix_server_notify_client_of_event(pmix_status_t status, const pmix_proc_t *source,
                                                 pmix_data_range_t range, const pmix_info_t info[],
                                                 size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    GUARD_ORIGINAL(pmix_server_notify_client_of_event);
    pmix_proc_t all;
    if (!guard_does(GUARD_CONNECTIONS) || range != PMIX_RANGE_NAMESPACE || source == NULL ||
        notify_has_targets(info, ninfo))
        return original(status, source, range, info, ninfo, cbfunc, cbdata);
    pmix_info_t *more = calloc(ninfo + 1, sizeof(*more)); /* the library takes a copy */
    if (more == NULL)
        return PMIX_ERR_NOMEM;
    if (ninfo > 0)
        memcpy(more, info, ninfo * sizeof(*more));
    PMIX_LOAD_PROCID(&all, source->nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&more[ninfo], PMIX_EVENT_CUSTOM_RANGE, &all, PMIX_PROC);
    const pmix_status_t rc = original(status, source, PMIX_RANGE_CUSTOM, more, ninfo + 1, cbfunc, cbdata);
    PMIX_INFO_DESTRUCT(&more[ninfo]);
    free(more);
    return rc;
}

#else

void guard_job_forgotten(const char *nspace)
{
    (void)nspace;
}

#endif
