/*
 * repair_connect.c - a connection that is being made holds nobody up, and when it breaks only itself breaks.
 *
 * The library reads the first message of a new connection with blocking calls, on the thread that does
 * everything: who connects and says nothing stops the server for as long as he likes. Here the library gets
 * the connection when its message is there as a whole. And where the other side is gone before it was
 * answered, the library takes a namespace off a list that it never put it on: a tool that is interrupted at
 * the wrong moment ends the server. Here the answer counts as sent, and the end of the connection is noticed
 * a moment later, as that of any other.
 * Nor does the library ask munged, which may hang: where somebody opens credentials for it (door/opened.h),
 * the connection waits here until its credential is opened, and the library's own check is told the result.
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
#include <unistd.h>
#include <utlist.h>

#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>
#include <src/mca/psec/base/base.h>
#include <src/mca/ptl/base/base.h>
#include <src/server/pmix_server_ops.h>

#include "mca/door/connections.h"
#include "mca/door/first_message.h"
#include "mca/door/opened.h"
#include "mca/door/working.h"
#include "mca/repairs/repair.h"
#include "mca/repairs/repair_peer.h"
#include "mca/repairs/repair_versions.h"

#if REPAIRS_CONNECTIONS

#define PATIENCE_S      2    /* for a header, and again for what follows it */
#define OPEN_PATIENCE_S 10   /* for the answer about a credential, which comes much sooner, even as a no */
#define MAX_WAITING     256  /* connections that have not said all; then the oldest goes */
#define MAX_OPENING     4096 /* those whose credential is being opened: a thousand nodes may start at once */

/* A connection whose message is not there yet, or whose credential is being opened. All of this happens on
 * the library's thread. */
struct waiting {
    struct waiting *prev, *next;
    pmix_pending_connection_t *connection;
    struct event *event;
    int need;          /* bytes that are waited for */
    uint32_t number;   /* of its credential; 0: its message is waited for */
    char *credential;  /* NULL then */
    uint32_t uid, gid; /* that it claims */
};

struct waiting_list {
    struct waiting *first; /* the oldest */
    unsigned n, max;
};
static struct waiting_list for_message = {.max = MAX_WAITING}, for_opening = {.max = MAX_OPENING};

/* A module of that name is active here, and one that does not wait for more from the other side. munge reads
 * a credential up to its end. From 5.0 on the library leaves behind what it knows of one whose credential it
 * refuses, so it gets none that it would. */
static bool security_is_sound(const struct first_message *first, bool *munge)
{
    const pmix_psec_module_t *module = pmix_psec_base_assign_module(first->psec);
    *munge = module != NULL && strcmp(module->name, "munge") == 0;
    return module != NULL && module->server_handshake == NULL &&
           (!*munge || (first->credential != NULL && strlen(first->credential) <= DOOR_MAX_CREDENTIAL)) &&
           (PMIX_VERSION_MAJOR < 5 || first->client || strcmp(module->name, "native") != 0 ||
            first_message_is_native(first));
}

/* A tool that is a process of one's own job shares the job's record, which the library takes off its list
 * when it refuses the tool. It refuses one of another user or group than it was told of. */
static bool shares_soundly(const struct first_message *first)
{
    return !connections_is_only_own() || !first->started ||
           (first->uid == geteuid() && first->gid == getegid());
}

/* Look at the message that is there as a whole, without taking it; free(). NULL: it is not sound. Such a one
 * must not reach the library: it releases twice what it knows of a rank, or frees the message twice, and
 * believes lengths. */
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
         first_message_read(message + sizeof(header), header.nbytes, connections_is_only_own(), first) &&
         security_is_sound(first, munge) && shares_soundly(first)))
        return message;
    free(message);
    return NULL;
}

static pmix_server_tool_connection_fn_t host_tool_connected;

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

/* A process of one's own job shares the job's record. */
static bool connect_shares_record(const struct first_message *first)
{
    return first->started && connections_is_only_own();
}

#if PMIX_COUNTS_TOOLS
/* The library means to put the namespace of a tool on its list, counts that, and does not do it. */
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

/* From 5.0.9 on a tool that brings its name along is refused when a namespace of that name is on the
 * library's list, where its storage puts one for each tool, with nothing in it. So that has no name as long
 * as the library looks. */
static pmix_namespace_t *connect_namesake(const char *name)
{
    pmix_namespace_t *nptr;
    PMIX_LIST_FOREACH(nptr, &pmix_globals.nspaces, pmix_namespace_t)
    if (nptr->nspace != NULL && strcmp(nptr->nspace, name) == 0)
        return nptr;
    return NULL;
}

/* A tool's namespace is not on the library's list, but taken off it on an error: from 5.0.9 on of any tool,
 * before of one that another server started. Now it is a list of its own until it is put on one. */
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
    pmix_status_t (*original)(int, char *, size_t) = NULL;
    *(void **)&original = fab_repair_original(__func__);
    pmix_status_t rc = original == NULL ? PMIX_ERR_NOT_SUPPORTED : original(sd, data, size);
    if (rc == PMIX_SUCCESS && sd == handing.sd && ++handing.reads == 2 && handing.first->started &&
        !connect_shares_record(handing.first) && handing.first->kind_at < size)
        data[handing.first->kind_at]--;
    return rc;
}

/* What the library knows of a process that it is going to let in; NULL: nothing. */
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

/* One's own client. Where it is refused, the library releases twice what it knows of the process, and leaves
 * in it and in its job what the refused one has said. */
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

/* first: NULL when there is no sound message. */
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

/* The library's turn: it reads without waiting, or finds the end of the connection and cleans up. */
static void hand_over(pmix_pending_connection_t *connection)
{
    void (*original)(int, short, void *) = NULL;
    *(void **)&original = fab_repair_original("pmix_ptl_base_connection_handler");
    if (original == NULL)
        return;
    if (!fab_repair_wanted(FAB_REPAIR_CONNECTIONS)) {
        original(-1, EV_WRITE, connection);
        return;
    }
    struct first_message first;
    bool munge;
    working_on(connection->sd, -1);
    char *message = connect_message(connection->sd, &first, &munge);
    if (message == NULL)
        repair_end_connection(connection->sd);
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
    working_ended();
    free(message);
}

static void hand_over_or_open(pmix_pending_connection_t *connection);

static void stop_waiting(struct waiting *w, bool give_up)
{
    pmix_pending_connection_t *connection = w->connection;
    const bool was_opened = w->number != 0;
    struct waiting_list *list = was_opened ? &for_opening : &for_message;
    DL_DELETE(list->first, w);
    list->n--;
    event_free(w->event);
    free(w->credential);
    free(w);
    repair_wait_for_bytes(connection->sd, 1);
    if (give_up)
        repair_end_connection(connection->sd);
    if (give_up || was_opened)
        hand_over(connection);
    else
        hand_over_or_open(connection);
}

static void waiting_add(struct waiting_list *list, struct waiting *w)
{
    DL_APPEND(list->first, w);
    list->n++;
}

static void waiting_bound(struct waiting_list *list)
{
    if (list->n > list->max)
        stop_waiting(list->first, true);
}

/* ---- its credential ------------------------------------------------------------------------------- */

static void connect_on_opened(const struct door_opened *opened)
{
    struct waiting *w;
    DL_SEARCH_SCALAR(for_opening.first, w, number, opened->number);
    if (w == NULL)
        return;
    const bool good = opened->good && opened->uid == w->uid && opened->gid == w->gid;
    if (good)
        repair_credential_opened(w->credential, opened);
    stop_waiting(w, !good);
}

static void connect_on_impatience(evutil_socket_t sd, short what, void *arg)
{
    (void)sd, (void)what;
    stop_waiting(arg, true);
}

/* False: no memory. */
static bool connect_open(pmix_pending_connection_t *connection, const struct first_message *first)
{
    static uint32_t last;
    const struct timeval patience = {.tv_sec = OPEN_PATIENCE_S};
    struct waiting *w = calloc(1, sizeof(*w));
    if (w != NULL) {
        w->event = event_new(pmix_globals.evbase, -1, 0, connect_on_impatience, w);
        w->credential = strdup(first->credential);
    }
    if (w == NULL || w->event == NULL || w->credential == NULL || event_add(w->event, &patience) != 0) {
        if (w != NULL && w->event != NULL)
            event_free(w->event);
        free(w == NULL ? NULL : w->credential);
        free(w);
        return false;
    }
    last += last == UINT32_MAX ? 2 : 1; /* never 0 */
    w->connection = connection;
    w->number = last;
    w->uid = first->uid;
    w->gid = first->gid;
    waiting_add(&for_opening, w);
    door_on_opened(connect_on_opened);
    door_open(last, first->credential);
    waiting_bound(&for_opening);
    return true;
}

/* Its message is there as a whole. */
static void hand_over_or_open(pmix_pending_connection_t *connection)
{
    struct first_message first;
    bool munge = false;
    working_on(connection->sd, -1);
    char *message = door_has_opener() ? connect_message(connection->sd, &first, &munge) : NULL;
    const bool opens = message != NULL && munge;
    working_ended();
    if (!opens || !connect_open(connection, &first)) {
        if (opens)
            repair_end_connection(connection->sd);
        hand_over(connection);
    }
    free(message);
}

/* ---- its message ---------------------------------------------------------------------------------- */

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
    waiting_add(&for_message, w);
    if (!wait_on(w))
        stop_waiting(w, true);
    else
        waiting_bound(&for_message);
}

void pmix_ptl_base_connection_handler(int sd, short args, void *cbdata)
{
    pmix_pending_connection_t *connection = cbdata;
    (void)sd, (void)args;
    repair_on_library_thread = true;
    const bool wanted = fab_repair_wanted(FAB_REPAIR_CONNECTIONS);
    int need = wanted ? connect_bytes_needed(connection->sd) : 0;
    if (need > 0)
        start_waiting(connection, need);
    else if (wanted)
        hand_over_or_open(connection);
    else
        hand_over(connection);
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
    if (fab_repair_wanted(FAB_REPAIR_CONNECTIONS))
        send_at_once(sd);
    pmix_status_t rc = original == NULL ? PMIX_ERR_NOT_SUPPORTED : original(sd, ptr, size);
    return fab_repair_wanted(FAB_REPAIR_CONNECTIONS) ? PMIX_SUCCESS : rc;
}

#endif
