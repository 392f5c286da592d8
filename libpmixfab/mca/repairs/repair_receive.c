/*
 * repair_receive.c - what connected tools and relays send: how much, and what of it reaches the library.
 *
 * The library makes room for as much as a message's first bytes announce, and never frees what it has of a
 * message whose connection is lost. It takes a message of a tool for the answer of its own server when the
 * tag is the same. It unpacks what stands in it for each command that it knows, and believes each count. Here
 * a message is not longer than the longest that fabricd has use for, and a command is one that fabricd
 * answers (mca/door/door_request.h).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <src/include/pmix_config.h>

#include <src/client/pmix_client_ops.h>
#include <src/include/pmix_globals.h>
#include <src/mca/bfrops/base/base.h>
#include <src/mca/ptl/base/base.h>
#include <src/server/pmix_server_ops.h>

#include "mca/door/connections.h"
#include "mca/door/door_request.h"
#include "mca/door/working.h"
#include "mca/repairs/repair.h"
#include "mca/repairs/repair_peer.h"
#include "mca/repairs/repair_versions.h"
#include "topo/model/delivery.h"

#if REPAIRS_CONNECTIONS

/* A host's report in its credential, which makes 4 bytes of 3, and what stands around it. */
#define REPAIR_MOST_BYTES ((uint32_t)2 * FAB_DELIVERY_MAX + 131072)

#define OWN_MOST_BYTES    ((uint32_t)1 << 30) /* of one's own client or tool */
#define MOST_UNREAD       16384               /* answers that the other side has not read */
#define MOST_UNREAD_BYTES ((size_t)64 << 20)
#define LOOK_AT_ALL       16 /* once for so many questions */

/* Somebody who has connected to this server; not a server that this one has connected to, and not itself. */
static bool receive_is_connected(const pmix_peer_t *peer)
{
    return peer != NULL && peer != pmix_globals.mypeer && peer != pmix_client_globals.myserver &&
           (peer->proc_type.type & (PMIX_PROC_CLIENT | PMIX_PROC_TOOL)) != 0;
}

/* A server of one user's own has nobody outside. */
static bool receive_is_from_outside(const pmix_peer_t *peer)
{
    return !connections_is_only_own() && receive_is_connected(peer);
}

/* Whom he has proved to be: the library's own way believes what a connection says of itself. */
static int64_t receive_proved_user(const pmix_peer_t *peer)
{
    const pmix_psec_module_t *psec = peer->nptr == NULL ? NULL : peer->nptr->compat.psec;
    return psec != NULL && peer->info != NULL && strcmp(psec->name, "munge") == 0 ? (int64_t)peer->info->uid
                                                                                  : -1;
}

/* ---- a message comes ----------------------------------------------------------------------------- */

/* The header is there as a whole: make room for what it announces, of which no page is touched before it
 * comes. */
static bool receive_begin_data(int sd, pmix_ptl_recv_t *msg)
{
    const bool own = connections_is_only_own();
    msg->hdr.pindex = (int32_t)ntohl((uint32_t)msg->hdr.pindex);
    msg->hdr.tag = ntohl(msg->hdr.tag);
    msg->hdr.nbytes = ntohl(msg->hdr.nbytes);
    const uint32_t n = msg->hdr.nbytes;
    if (own ? n > OWN_MOST_BYTES : n == 0 || n > REPAIR_MOST_BYTES || !connections_take(sd, n)) {
        fab_repair_log("a message of a tool was refused: it announces more bytes than fabricd has use for, "
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
        repair_end_connection(sd);
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
    void (*original)(int, short, void *) = NULL;
    pmix_peer_t *peer = cbdata;
    *(void **)&original = fab_repair_original("pmix_ptl_base_recv_handler");
    if (original == NULL)
        return;
    if (!fab_repair_wanted(FAB_REPAIR_CONNECTIONS) || !receive_is_connected(peer)) {
        original(sd, flags, cbdata);
        return;
    }
    if (peer->recv_msg == NULL)
        peer->recv_msg = receive_begin(peer);
    pmix_ptl_recv_t *msg = peer->recv_msg;
    if (msg == NULL || (!msg->hdr_recvd && !receive_header(sd, msg)))
        return;
    PMIX_RETAIN(msg);
    working_on(sd, receive_proved_user(peer));
    original(sd, flags, cbdata);
    working_ended();
    if (peer->sd < 0) { /* lost, and the message with it */
        free(msg->data);
        msg->data = NULL;
        repair_peer_lost(peer);
    }
    PMIX_RELEASE(msg);
}

/* What could not be sent is how the library learns of an end, too. */
void pmix_ptl_base_send_handler(int sd, short flags, void *cbdata)
{
    void (*original)(int, short, void *) = NULL;
    pmix_peer_t *peer = cbdata;
    *(void **)&original = fab_repair_original("pmix_ptl_base_send_handler");
    if (original == NULL)
        return;
    if (!fab_repair_wanted(FAB_REPAIR_CONNECTIONS) || !receive_is_connected(peer)) {
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
        repair_peer_lost(peer);
    if (half != NULL)
        PMIX_RELEASE(half);
    PMIX_RELEASE(peer);
}

/* ---- a message is there --------------------------------------------------------------------------- */

/* A register's status is overlooked: it gets an answer without a byte, as in repair_register.c. */
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
    fab_repair_log("a tool was disconnected: it asks, and does not read the answers");
    repair_end_connection(peer->sd);
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
        repair_end_connection(peer->sd);
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
    void (*original)(int, short, void *) = NULL;
    pmix_ptl_recv_t *msg = cbdata;
    pmix_peer_t *peer = (pmix_peer_t *)msg->peer;
    pmix_buffer_t buf;
    *(void **)&original = fab_repair_original("pmix_ptl_base_process_msg");
    if (original == NULL)
        return;
    if (!fab_repair_wanted(FAB_REPAIR_CONNECTIONS) || !receive_is_from_outside(peer)) {
        original(fd, flags, cbdata);
        return;
    }
    PMIX_CONSTRUCT(&buf, pmix_buffer_t);
    PMIX_LOAD_BUFFER(peer, &buf, msg->data, msg->hdr.nbytes);
    msg->data = NULL;
    connections_give(peer->sd, buf.bytes_used);
    working_on(peer->sd, receive_proved_user(peer));
    receive_dispatch(peer, &msg->hdr, &buf);
    working_ended();
    PMIX_DESTRUCT(&buf);
    PMIX_RELEASE(msg);
}

#endif
