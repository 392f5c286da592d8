/*
 * stock_endpoints.c - a process of a job that knows only the stock PMIx library: writes its endpoints as one
 * line of JSON, and each PMIX_FABRIC_UPDATE_ENDPOINTS that comes as one more, until its input ends.
 *
 *   stock_endpoints FILE
 */
#include <pmix.h>
#include <stdio.h>
#include <unistd.h>

#include "test/integration/stock_json.h"
#include "test/integration/stock_status.h"

static void on_update(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                      size_t n, pmix_info_t results[], size_t n_results,
                      pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)id, (void)source, (void)results, (void)n_results;
    printf("{\"event\": \"%s\", \"infos\": ", stock_status(status));
    print_infos(info, n);
    printf("}\n");
    fflush(stdout);
    if (done != NULL)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

int main(int argc, char **argv)
{
    pmix_status_t code = PMIX_FABRIC_UPDATE_ENDPOINTS;
    pmix_value_t *value = NULL;
    pmix_proc_t self;
    char byte;
    if (argc != 2 || freopen(argv[1], "w", stdout) == NULL || PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS ||
        PMIx_Register_event_handler(&code, 1, NULL, 0, on_update, NULL, NULL) < 0)
        return 1;
    pmix_status_t rc = PMIx_Get(&self, PMIX_FABRIC_ENDPT, NULL, 0, &value);
    if (rc == PMIX_SUCCESS)
        print_value(value);
    else
        printf("\"%s\"", stock_status(rc));
    printf("\n");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return PMIx_Finalize(NULL, 0) == PMIX_SUCCESS ? 0 : 1;
}
