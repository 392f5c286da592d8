/*
 * repair_leave.c - a connection that ends leaves nothing behind, and nothing of anybody else ends with it.
 *
 * When a handshake fails the library closes the connection's descriptor twice. Whoever is given its number in
 * between, on another thread, loses what he has just opened: a newcomer's connection, or the store. Here the
 * number stays taken until the library has come to an end with it. And it keeps all that it knows of each
 * tool that ever was: 6 KB, and 50 KB more of each namespace.
 */
#include <string.h>
#include <unistd.h>

#include <src/include/pmix_config.h>

#include <src/class/pmix_pointer_array.h>
#include <src/event/pmix_event.h>
#include <src/include/pmix_globals.h>
#include <src/mca/gds/base/base.h>
#include <src/server/pmix_server_ops.h>

#include "mca/door/connections.h"
#include "mca/door/left.h"
#include "mca/repairs/repair.h"
#include "mca/repairs/repair_peer.h"
#include "mca/repairs/repair_versions.h"

#if REPAIRS_CONNECTIONS

typedef int (*close_fn)(int fd);

static int leave_close(int fd)
{
    static _Atomic(close_fn) original; /* the same for all who look for it */
    close_fn found = original;
    if (found == NULL) {
        *(void **)&found = fab_repair_original("close");
        original = found;
    }
    return found == NULL ? -1 : found(fd);
}

/* ---- descriptors --------------------------------------------------------------------------------- */

static void leave_on_end(evutil_socket_t none, short what, void *arg)
{
    const int fd = (int)(intptr_t)arg;
    (void)none, (void)what;
    connections_forget(fd);
    leave_close(fd);
}

/* Of the system, for everybody in this process; only connections that repair_accept.c has let in are another
 * matter. */
int close(int fd)
{
    const struct timeval at_once = {0};
    switch (connections_close(fd)) {
    case CONNECTIONS_AGAIN:
        return 0;
    case CONNECTIONS_FIRST:
        if (repair_on_library_thread && pmix_globals.evbase != NULL &&
            event_base_once(pmix_globals.evbase, -1, EV_TIMEOUT, leave_on_end, (void *)(intptr_t)fd,
                            &at_once) == 0)
            return 0;
        connections_forget(fd);
        break;
    case CONNECTIONS_OTHER:
        break;
    }
    return leave_close(fd);
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
    if (!leave_has_namesake(peer, &name))
        door_left(&name);
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

void repair_peer_lost(pmix_peer_t *peer)
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

void fab_repair_job_forgotten(const char *nspace)
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

_Thread_local bool repair_on_library_thread;

#else

void fab_repair_job_forgotten(const char *nspace)
{
    (void)nspace;
}

#endif
