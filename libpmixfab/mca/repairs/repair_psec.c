/*
 * repair_psec.c - the library's thread does not wait for munged.
 *
 * The library's security module asks munged when a connection is made, and at its start whether there is one,
 * on the thread that does everything. Where somebody opens credentials for it (door/opened.h) it is told what
 * he found out, and asks for nothing: such a process makes no connections of its own, so what it makes at its
 * start is never used. Whether a munged is there at all, its first credential tells.
 */
#include <munge.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "mca/repairs/repair.h"
#include "mca/repairs/repair_peer.h"
#include "mca/repairs/repair_versions.h"

#if REPAIRS_CONNECTIONS

#define MOST_OPENED 4096 /* that the library has not asked for yet, or never will */

struct opened_credential {
    struct opened_credential *prev, *next;
    struct door_opened opened;
    char text[];
};

/* On the library's thread. */
static struct opened_credential *opened_list;
static unsigned n_opened;

static void opened_drop(struct opened_credential *one)
{
    DL_DELETE(opened_list, one);
    n_opened--;
    free(one);
}

void repair_credential_opened(const char *credential, const struct door_opened *opened)
{
    struct opened_credential *one = calloc(1, sizeof(*one) + strlen(credential) + 1);
    if (one == NULL)
        return;
    one->opened = *opened;
    memcpy(one->text, credential, strlen(credential) + 1);
    DL_APPEND(opened_list, one);
    if (++n_opened > MOST_OPENED)
        opened_drop(opened_list);
}

static bool psec_is_served(void)
{
    return door_has_opener() && fab_repair_wanted(FAB_REPAIR_CONNECTIONS);
}

munge_err_t munge_encode(char **credential, munge_ctx_t context, const void *bytes, int size)
{
    munge_err_t (*original)(char **, munge_ctx_t, const void *, int) = NULL;
    if (psec_is_served()) {
        *credential = strdup("MUNGE:");
        return *credential == NULL ? EMUNGE_NO_MEMORY : EMUNGE_SUCCESS;
    }
    *(void **)&original = fab_repair_original(__func__);
    return original == NULL ? EMUNGE_SNAFU : original(credential, context, bytes, size);
}

munge_err_t munge_decode(const char *credential, munge_ctx_t context, void **bytes, int *size, uid_t *uid,
                         gid_t *gid)
{
    munge_err_t (*original)(const char *, munge_ctx_t, void **, int *, uid_t *, gid_t *) = NULL;
    struct opened_credential *one;
    if (!psec_is_served()) {
        *(void **)&original = fab_repair_original(__func__);
        return original == NULL ? EMUNGE_SNAFU : original(credential, context, bytes, size, uid, gid);
    }
    DL_FOREACH(opened_list, one)
    {
        if (strcmp(one->text, credential) == 0)
            break;
    }
    if (one == NULL)
        return EMUNGE_SOCKET;
    *uid = one->opened.uid;
    *gid = one->opened.gid;
    opened_drop(one);
    return EMUNGE_SUCCESS;
}

#endif
