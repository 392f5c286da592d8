#include "pmix/relay/relay_tags.h"

#include <pmix.h>
#include <pmix_version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/answers/version.h"
#include "pmix/relay/relay.h"
#include "pmix/relay/thread.h"
#include "pmixfab.h"

#define BUILT_FOR FAB_PMIX_VERSION(PMIX_VERSION_MAJOR, PMIX_VERSION_MINOR, PMIX_VERSION_RELEASE)
/* From this version on the library accepts an answer only from the peer that it asked. */
#define KEEPS_APART FAB_PMIX_VERSION(6, 1, 1)
/* Earlier versions with which the repair was tested. */
#define IS_TRIED                                                                                             \
    (BUILT_FOR == FAB_PMIX_VERSION(4, 2, 2) ||                                                               \
     (BUILT_FOR >= FAB_PMIX_VERSION(5, 0, 3) && BUILT_FOR < FAB_PMIX_VERSION(5, 1, 0)) ||                    \
     BUILT_FOR == FAB_PMIX_VERSION(6, 1, 0))

#ifdef HAVE_PMIX_PRIVATE
#include <src/client/pmix_client_ops.h>
#include <src/include/pmix_globals.h>
#include <src/mca/ptl/base/base.h>

#define HAS_REPAIR true
#define FIRST_TAG  UINT32_C(0x40000000)

/* On the library's thread. */
static void raise_tags(pmix_status_t status, void *cbdata)
{
    (void)status, (void)cbdata;
#if PMIX_VERSION_MAJOR < 6 /* one number counts for all connections */
    if (pmix_ptl_base.current_tag < FIRST_TAG)
        pmix_ptl_base.current_tag = FIRST_TAG;
#else /* each connection has its own, and each new one begins anew */
    pmix_peer_t *server = pmix_client_globals.myserver;
    if (server != NULL && server != pmix_globals.mypeer && server->dyn_tags_current < FIRST_TAG)
        server->dyn_tags_start = server->dyn_tags_current = FIRST_TAG;
#endif
}

/* On the library's thread. */
static void drop_unanswered(pmix_status_t status, void *cbdata)
{
    pmix_ptl_posted_recv_t *one, *next;
    (void)status, (void)cbdata;
    if (PMIX_PEER_IS_SERVER(pmix_globals.mypeer) && !PMIX_PEER_IS_TOOL(pmix_globals.mypeer))
        return; /* they are not answered there, and some wait for its clients */
    PMIX_LIST_FOREACH_SAFE(one, next, &pmix_ptl_base.posted_recvs, pmix_ptl_posted_recv_t)
    {
        if (one->tag < PMIX_PTL_TAG_DYNAMIC || one->tag == UINT32_MAX)
            continue;
        pmix_list_remove_item(&pmix_ptl_base.posted_recvs, &one->super);
        free(one); /* as PMIX_RELEASE(), which can print and abort */
    }
}
#else
#define HAS_REPAIR false

static void raise_tags(pmix_status_t status, void *cbdata)
{
    (void)status, (void)cbdata;
}

static void drop_unanswered(pmix_status_t status, void *cbdata)
{
    (void)status, (void)cbdata;
}
#endif

static bool is_repaired;

static void repair_on_thread(pmix_op_cbfunc_t repair)
{
    if (!is_repaired)
        return;
    fab_on_pmix_thread(repair, NULL);
    fab_wait_for_pmix_thread();
}

int relay_check_library(void)
{
    const char *off = getenv("FABRICD_NO_REPAIR");
    const bool wanted = off == NULL || strcmp(off, "1") != 0;
    const long version = fab_running_version();
    is_repaired = wanted && HAS_REPAIR && version == BUILT_FOR && (IS_TRIED || version >= KEEPS_APART);
    return wanted && !is_repaired && version < KEEPS_APART ? PMIXFAB_ERR_UNSUPPORTED : PMIXFAB_OK;
}

void relay_repair_questions(void)
{
    repair_on_thread(raise_tags);
}

void relay_repair_unanswered(void)
{
    repair_on_thread(drop_unanswered);
}
