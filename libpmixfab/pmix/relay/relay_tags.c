#include "pmix/relay/relay_tags.h"

#include <pmix.h>
#include <pmix_version.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/relay/thread.h"
#include "pmixfab.h"

#define IN_NUMBERS(major, minor, release) (1000000 * (major) + 1000 * (minor) + (release))
#define REPAIRED                          IN_NUMBERS(4, 2, 2)

#if defined(HAVE_PMIX_PRIVATE) &&                                                                            \
    IN_NUMBERS(PMIX_VERSION_MAJOR, PMIX_VERSION_MINOR, PMIX_VERSION_RELEASE) == REPAIRED
#include <src/include/pmix_globals.h>
#include <src/mca/ptl/base/base.h>

#define FIRST_TAG UINT32_C(0x40000000)

static bool is_built_for; /* this library */

static int set_tag(void)
{
    is_built_for = true;
    /* The progress thread counts on from here; a number that it takes meanwhile is as good. */
    __atomic_store_n(&pmix_ptl_base.current_tag, FIRST_TAG, __ATOMIC_SEQ_CST);
    return PMIXFAB_OK;
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
        free(one); /* what PMIX_RELEASE() does, which can print and abort */
    }
}

void relay_repair_unanswered(void)
{
    if (!is_built_for)
        return;
    fab_on_pmix_thread(drop_unanswered, NULL);
    fab_wait_for_pmix_thread();
}
#else
static int set_tag(void)
{
    return PMIXFAB_ERR_UNSUPPORTED;
}

void relay_repair_unanswered(void)
{
}
#endif

int relay_repair_tags(void)
{
    long major = 0, minor = 0, release = 0;
    const char *off = getenv("FABRICD_NO_REPAIR");
    const char *version = PMIx_Get_version(); /* "OpenPMIx 4.2.2, repo rev: ..." */
    const char *number = version == NULL ? NULL : strpbrk(version, "0123456789");
    if (off != NULL && strcmp(off, "1") == 0)
        return PMIXFAB_OK;
    if (number == NULL || sscanf(number, "%ld.%ld.%ld", &major, &minor, &release) < 2)
        return PMIXFAB_ERR_UNSUPPORTED;
    return IN_NUMBERS(major, minor, release) == REPAIRED ? set_tag() : PMIXFAB_ERR_UNSUPPORTED;
}
