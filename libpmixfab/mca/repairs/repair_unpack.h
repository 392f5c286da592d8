/*
 * repair_unpack.h - infos of a request, for the repairs that read one as the library does.
 */
#ifndef FAB_MCA_REPAIRS_REPAIR_UNPACK_H
#define FAB_MCA_REPAIRS_REPAIR_UNPACK_H

#include <limits.h>

#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>
#include <src/mca/bfrops/base/base.h>

/* Each packed info takes a byte at least: more than there are bytes is a lie that would cost memory. What is
 * in *info is the caller's to free, also on error. */
static inline pmix_status_t repair_unpack_infos(pmix_peer_t *peer, pmix_buffer_t *buf, pmix_info_t **info,
                                                size_t *n)
{
    pmix_status_t rc;
    int32_t count = 1;
    size_t given = 0;
    PMIX_BFROPS_UNPACK(rc, peer, buf, &given, &count, PMIX_SIZE);
    if (rc != PMIX_SUCCESS || given == 0)
        return rc;
    if (given > (size_t)(buf->pack_ptr - buf->unpack_ptr) || given > INT32_MAX)
        return PMIX_ERR_BAD_PARAM;
    PMIX_INFO_CREATE(*info, given);
    if (*info == NULL)
        return PMIX_ERR_NOMEM;
    *n = given;
    count = (int32_t)given;
    PMIX_BFROPS_UNPACK(rc, peer, buf, *info, &count, PMIX_INFO);
    return rc;
}

#endif
