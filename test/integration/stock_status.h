/* stock_status.h - a status by one name, whatever this version of the library calls it. */
#ifndef TEST_STOCK_STATUS_H
#define TEST_STOCK_STATUS_H

#include <pmix.h>
#include <stdio.h>

/* Those that tests ask for, by the names that 4.2 has for them; another one by its number. The text is good
 * until the thread's next call. */
static inline const char *stock_status(pmix_status_t status)
{
    static const struct {
        pmix_status_t code;
        const char *name;
    } known[] = {
        {PMIX_SUCCESS, "SUCCESS"},
        {PMIX_ERROR, "ERROR"},
        {PMIX_ERR_BAD_PARAM, "BAD-PARAM"},
        {PMIX_ERR_DUPLICATE_KEY, "DUPLICATE KEY"},
        {PMIX_ERR_EMPTY, "EMPTY"},
        {PMIX_ERR_INIT, "INIT"},
        {PMIX_ERR_INVALID_CRED, "INVALID-CREDENTIAL"},
        {PMIX_ERR_INVALID_NAMESPACE, "INVALID-NAMESPACE"},
        {PMIX_ERR_LOST_CONNECTION, "LOST_CONNECTION"},
        {PMIX_ERR_NOMEM, "NO-MEM"},
        {PMIX_ERR_NO_PERMISSIONS, "NO-PERMISSIONS"},
        {PMIX_ERR_NOT_AVAILABLE, "NOT_AVAILABLE"},
        {PMIX_ERR_NOT_FOUND, "NOT-FOUND"},
        {PMIX_ERR_NOT_SUPPORTED, "NOT-SUPPORTED"},
        {PMIX_ERR_OUT_OF_RESOURCE, "OUT-OF-RESOURCE"},
        {PMIX_ERR_PARTIAL_SUCCESS, "PARTIAL SUCCESS"},
        {PMIX_ERR_TIMEOUT, "TIMEOUT"},
        {PMIX_ERR_UNREACH, "UNREACHABLE"},
        {PMIX_EXISTS, "EXISTS"},
        {PMIX_OPERATION_SUCCEEDED, "OPERATION-SUCCEEDED"},
        {PMIX_FABRIC_UPDATE_ENDPOINTS, "FABRIC-UPDATE-ENDPOINTS"},
        /* how processes and jobs end */
        {PMIX_ERR_PROC_ABORTED, "PROC-ABORTED"},
        {PMIX_ERR_PROC_ABORTED_BY_SIG, "PROC-ABORTED-BY-SIG"},
        {PMIX_ERR_PROC_KILLED_BY_CMD, "PROC-KILLED-BY-CMD"},
        {PMIX_ERR_PROC_REQUESTED_ABORT, "PROC-ABORT-REQUESTED"},
        {PMIX_ERR_EXIT_NONZERO_TERM, "PROC-EXIT-NONZERO-TERM"},
        {PMIX_ERR_JOB_APP_NOT_EXECUTABLE, "APPLICATION NOT EXECUTABLE"},
        {PMIX_ERR_JOB_EXE_NOT_FOUND, "EXECUTABLE NOT FOUND"},
        {PMIX_ERR_JOB_INSUFFICIENT_RESOURCES, "INSUFFICIENT RESOURCES"},
        {PMIX_ERR_JOB_NO_EXE_SPECIFIED, "NO EXECUTABLE SPECIFIED"},
        {PMIX_ERR_JOB_SYS_OP_FAILED, "SYSTEM OPERATION FAILED"},
        {PMIX_ERR_JOB_WDIR_NOT_FOUND, "WORKING DIRECTORY NOT FOUND"},
    };
    static _Thread_local char number[16];
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].code == status)
            return known[i].name;
    (void)snprintf(number, sizeof(number), "%d", status);
    return number;
}

#endif
