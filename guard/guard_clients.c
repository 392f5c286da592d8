/*
 * guard_clients.c - those who are connected: how much they send and what of it reaches the library; their
 * end; and who hears of an event (docs/upstream.md, M1 to M10, C2, C17, R4, R8, R11, R18).
 *
 * The library makes room for as much as a message's first bytes announce, and never frees what it has of a
 * message whose connection is lost. It takes a message of a tool for the answer of its own server when the
 * tag is the same. It unpacks what stands in it for each command that it knows, and believes each count. Here
 * a message is not longer than the longest that fabricd has use for, and a command is one that fabricd
 * answers.
 *
 * When a handshake fails the library closes the connection's descriptor twice. Whoever is given its number in
 * between, on another thread, loses what he has just opened. Here the number stays taken until the library
 * has come to an end with it. And the library keeps all that it knows of each tool that ever was.
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

/* A host's report in its credential, which makes 4 bytes of 3, and what stands around it. */
#define MOST_BYTES ((uint32_t)2 * FAB_DELIVERY_MAX + 131072)

#define OWN_MOST_BYTES    ((uint32_t)1 << 30) /* of one's own client or tool */
#define MOST_UNREAD       16384               /* answers that the other side has not read */
#define MOST_UNREAD_BYTES ((size_t)64 << 20)
#define LOOK_AT_ALL       16 /* once for so many questions */

/* ---- descriptors --------------------------------------------------------------------------------- */

static int clients_close(int fd)
{
    static int (*_Atomic original)(int); /* the same for all who look for it */
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

/* Of the system, for everybody in this process; only connections that accept() has admitted are another
 * matter. */
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

/* ---- what the library knows of a tool ------------------------------------------------------------ */

static bool leave_is_known(const pmix_namespace_t *nptr)
{
    const pmix_namespace_t *other;
    PMIX_LIST_FOREACH(other, &pmix_globals.nspaces, pmix_namespace_t)
    if (other == nptr)
        return true;
    return false;
}

/* The library's storage has put it on the list, and knows nothing else of it. */
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

/* Nobody of that namespace is there any more. */
static void leave_forget_namespace(const char *nspace)
{
    pmix_namespace_t *nptr, *next;
    pmix_status_t rc;
    PMIX_GDS_DEL_NSPACE(rc, nspace);
    (void)rc; /* what is not there need not be removed */
    PMIX_LIST_FOREACH_SAFE(nptr, next, &pmix_globals.nspaces, pmix_namespace_t)
    if (nptr->nspace != NULL && strcmp(nptr->nspace, nspace) == 0) {
        pmix_list_remove_item(&pmix_globals.nspaces, &nptr->super);
        PMIX_RELEASE(nptr);
    }
}

/* Somebody else who is connected has the same name. */
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

/* A process of a job that the host has registered: the library counts it until the job is forgotten. */
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

/* The library gathers the ends of connections into one event, and copies all of that for each further one: of
 * thousands that end at once it would be at that for seconds. And it keeps the event for a newcomer of the
 * same name, who would hear that his connection is lost. Here each has its own, which is not kept. */
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

/* Somebody who has connected to this server; not a server that this one has connected to, and not itself. */
static bool receive_is_connected(const pmix_peer_t *peer)
{
    return peer != NULL && peer != pmix_globals.mypeer && peer != pmix_client_globals.myserver &&
           (peer->proc_type.type & (PMIX_PROC_CLIENT | PMIX_PROC_TOOL)) != 0;
}

/* A server of one user's own has nobody outside. */
static bool receive_is_from_outside(const pmix_peer_t *peer)
{
    return !guard_serves_user() && receive_is_connected(peer);
}

/* ---- a message comes ----------------------------------------------------------------------------- */

/* The header is there as a whole: make room for what it announces, of which no page is touched before it
 * comes. */
static bool receive_begin_data(int sd, pmix_ptl_recv_t *msg)
{
    const bool own = guard_serves_user();
    msg->hdr.pindex = (int32_t)ntohl((uint32_t)msg->hdr.pindex);
    msg->hdr.tag = ntohl(msg->hdr.tag);
    msg->hdr.nbytes = ntohl(msg->hdr.nbytes);
    const uint32_t n = msg->hdr.nbytes;
    if (own ? n > OWN_MOST_BYTES : n == 0 || n > MOST_BYTES || !connections_take(sd, n)) {
        guard_log("a message of a tool was refused: it announces more bytes than fabricd has use for, "
                  "or its user has too many under way");
        return false;
    }
    msg->data = n == 0 ? NULL : malloc(n);
    msg->rdptr = msg->data;
    msg->rdbytes = n;
    msg->hdr_recvd = n == 0 || msg->data != NULL;
    return msg->hdr_recvd;
}

/* The library takes a header that comes in pieces for none. True: it has its turn, with the data or with the
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

/* As the library would make it: so it is in our hands, too, when the library lets go of it. */
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
    if (peer->sd < 0) { /* lost, and the message with it */
        free(msg->data);
        msg->data = NULL;
        clients_lost(peer);
    }
    PMIX_RELEASE(msg);
}

/* What could not be sent is how the library learns of an end, too. */
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

/* ---- a message is there --------------------------------------------------------------------------- */

/* A register's status is overlooked: it gets an answer without a byte, as in guard_requests.c. */
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

/* Bytes of answers that it has not read. */
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

/* It asks, and does not read what it is told. */
static bool receive_reads_nothing(pmix_peer_t *peer)
{
    const pmix_ptl_send_t *last = (pmix_ptl_send_t *)pmix_list_get_last(&peer->send_queue);
    const size_t n = pmix_list_get_size(&peer->send_queue);
    if (n > MOST_UNREAD)
        return true;
    /* They are counted where that is too much, if all are as large as the last one. */
    const size_t about = receive_size(peer->send_msg) + (n == 0 ? 0 : receive_size(last) * n);
    return receive_is_too_much(peer, about) && receive_is_too_much(peer, receive_unread(peer));
}

static void receive_end_silent(pmix_peer_t *peer)
{
    guard_log("a tool was disconnected: it asks, and does not read the answers");
    guard_end_connection(peer->sd);
}

/* Of all, now and then: what a connection was told since it asked last is counted, and is what ends. */
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

/* Only what fabricd raises, and once: the library keeps each code that it is given, as often as it is given
 * it, looks through all of them for each further one, and sends an event as often as its code is there. */
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
        return; /* it has said good-bye, and gets no answer */
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

/* ---- events: one for a namespace names its targets, of which alone the library looks at the range ---- */

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
