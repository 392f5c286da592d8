/* channel_peers.h - inside the scheduler's end of the channel: its connections, and what works on their
 * frames. */
#ifndef FABRICD_CHANNEL_CHANNEL_PEERS_H
#define FABRICD_CHANNEL_CHANNEL_PEERS_H

#include <uthash.h>

#include "fabricd/base/rate.h"
#include "fabricd/base/timer.h"
#include "fabricd/channel/channel_server.h"
#include "fabricd/channel/channel_stream.h"

#define MOST_NODES 16384              /* connections that have shown who they are */
#define MOST_BYTES ((size_t)64 << 20) /* of deliveries that are coming or not answered */

struct peer {
    struct peer *prev, *next; /* of the server: in the order in which they came, or were proven */
    struct peer *prev_of_host, *next_of_host; /* of a proven one */
    struct channel_server *server;
    struct stream *stream;
    union credential_address from;
    char address[INET6_ADDRSTRLEN];
    bool proven, hello; /* hello: it has said it, and perhaps it is being checked */
    char name[FAB_HOST_MAX + 1];
    struct named_host *host; /* of a proven one */
    struct channel_seal nonces;
    struct channel_frame frame;
    struct timer *late, *silence;
    size_t unsent; /* when `late` was set */
    uint32_t highest;
    uint64_t seen; /* bit n: the request highest - n was there */
    struct channel_request *requests;
    unsigned n_requests, n_refused;  /* n_refused: without being looked at, since all was sent */
    struct channel_request *waiting; /* the one for news that is not answered; NULL: none */
    struct channel_wait known;       /* of it */
    bool look, scan;                 /* there may be something to tell; it is to scan */
};

/* A host that is connected, or was a moment ago and is to scan. */
struct named_host {
    UT_hash_handle hh;
    struct peer *nodes;
    int64_t scan_until; /* microseconds of CLOCK_MONOTONIC; 0: nothing is asked of it */
    char name[];
};

/* What a connection calls; none of these may end it. */
struct peer_calls {
    void (*frame)(struct peer *peer); /* peer->frame is whole: its memory is to be taken */
    void (*sent)(struct peer *peer);  /* all that was written */
    void (*gone)(struct peer *peer);  /* it is about to be freed */
    timer_fn silence;                 /* of peer->silence; takes a struct peer */
};

struct channel_server {
    struct event_base *base;
    struct credential_worker *worker;
    struct stream_listener *listener;
    struct served *served;
    struct counts *counts;
    struct channel_user user;
    struct channel_server_calls calls;
    struct peer *nodes, *unproven; /* proven ones; others */
    unsigned n_nodes, n_unproven;
    struct named_host *hosts;
    struct channel_request *fetches; /* that wait */
    unsigned n_fetching;
    struct known_digest *digests;
    size_t bytes;
    struct timer *look;
    struct log_limit said;
    struct peer_calls up;
};

/* (a stream_accept_fn) */
void peers_accept(struct stream *stream, const union credential_address *from, void *server);

/* Append a refusal of the request with this number. */
void peer_refuse(struct peer *peer, uint32_t number, int code, const char *reason);
/* The end of a connection, with the reason for both; peer_end() frees it, as peer_free() does without a word.
 * finish: what was written is sent first. */
void peer_end(struct peer *peer, int code, const char *reason);
void peer_free(struct peer *peer, bool finish);
/* When it is late, by what is missing now. */
void peer_set_late(struct peer *peer);
/* It has shown who it is, under peer->name. False: there is no memory. */
bool peer_become_proven(struct peer *peer);

struct named_host *host_find(const struct channel_server *server, const char *name);
struct named_host *host_add(struct channel_server *server, const char *name); /* NULL: no memory */
/* Where it is not connected, and nothing is asked of it. */
void host_drop(struct channel_server *server, struct named_host *host);

#endif
