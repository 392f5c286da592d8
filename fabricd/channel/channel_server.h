/*
 * channel_server.h - the scheduler's end of the nodes' channel: who is connected, what each may have under
 * way, and the answers. docs/design/channel.md has the limits and what is done beyond them.
 *
 * All on the loop.
 */
#ifndef FABRICD_CHANNEL_CHANNEL_SERVER_H
#define FABRICD_CHANNEL_CHANNEL_SERVER_H

#include "fabricd/base/counts.h"
#include "fabricd/channel/credential.h"
#include "fabricd/config/config.h"
#include "fabricd/serving/served.h"

struct channel_server;
struct channel_request; /* a delivery that is not answered yet */

struct channel_server_calls {
    /* The digest of what is held of this host; 0: nothing. */
    uint64_t (*held)(const char *host, void *cbdata);
    /*
     * A delivery in a good credential of this maker, who may be anybody's. bytes: free(). It is answered by
     * channel_answer(), perhaps before this returns. NULL: nobody takes deliveries.
     */
    void (*deliver)(const struct credential_maker *maker, void *bytes, size_t size,
                    struct channel_request *request, void *cbdata);
    void *cbdata;
};

/* It listens nowhere yet. NULL: no memory. */
struct channel_server *channel_server_new(struct event_base *base, struct credential_worker *worker);
void channel_server_free(struct channel_server *server); /* NULL allowed */

/*
 * Listen where [nodes] listen says, or with [security] remote = yes at all addresses; else nowhere. served:
 * what is published. PMIXFAB_ERR_IO, _NOTFOUND (no such interface, no such user), _NOMEM.
 */
int channel_server_start(struct channel_server *server, const struct config *config, struct served *served,
                         struct counts *counts, struct fab_err *err);
void channel_server_on(struct channel_server *server, const struct channel_server_calls *calls);
/* Close all connections: nodes come again by themselves. The worker is needed no more. */
void channel_server_stop(struct channel_server *server);

/* code 0: it is stored; `held`: of its host now; reason: "" for 0. code 1: nobody takes it now. Frees the
 * request. */
void channel_answer(struct channel_request *request, int code, uint64_t held, const char *reason);

/* Something else is published, or it is stale, or it is not: nodes are told. */
void channel_server_tell(struct channel_server *server);
/* What is held of a host is another report. */
void channel_server_held(struct channel_server *server, const char *host);
/* A node (NULL: every one that is connected) is to scan its devices and deliver, changed or not. A node that
 * is not connected is asked when it comes within 40 s. */
void channel_server_scan(struct channel_server *server, const char *host);

struct channel_server_status {
    bool listening;
    uint16_t port;
    unsigned connected; /* nodes */
    unsigned unproven;  /* connections that have not shown who they are */
};
void channel_server_status(const struct channel_server *server, struct channel_server_status *out);

/* ---- who may be a node ---- */

/* Beside root: [nodes] user. */
struct channel_user {
    char name[64]; /* "": nobody */
    uid_t uid;
};
int channel_user_find(const struct config *config, struct channel_user *out, struct fab_err *err);
/* PMIXFAB_ERR_PERM */
int channel_user_check(const struct channel_user *user, const struct credential_maker *maker,
                       const char *host, struct fab_err *err);

#endif
