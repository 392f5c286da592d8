/*
 * pnet_endpoints.h - a starter's way to the pools of endpoints: the control socket of the fabricd on its
 * host, where the kernel says who it is (docs/control.md, "endpoints").
 */
#ifndef FAB_MCA_PNET_PNET_ENDPOINTS_H
#define FAB_MCA_PNET_PNET_ENDPOINTS_H

#include "pmix/launch/blob.h"

struct pnet_endpoints_request {
    const char *rundir, *job;
    const char *const *planes;
    uint32_t n_planes;
    uint32_t count; /* of each plane */
    int seconds;    /* until it is given up */
};

/*
 * What the job has then, its planes named as in the request; free() it. PMIXFAB_ERR_UNREACH: no fabricd is
 * there. _TIMEOUT: it did not answer in time. Else fabricd's own error.
 */
int pnet_endpoints_take(const struct pnet_endpoints_request *request, struct fab_blob_endpoints **out,
                        uint32_t *n, struct fab_err *err);

/* What the job has is free. */
int pnet_endpoints_give_back(const struct pnet_endpoints_request *request, struct fab_err *err);

#endif
