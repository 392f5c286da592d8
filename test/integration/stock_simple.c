/*
 * stock_simple.c - a scheduler's whole life in the calls of the stock library's own example: its process
 * registers the fabric, gets its node's devices, sets up a job and does a node's part of it. A line each:
 * what, the status.
 *
 *   stock_simple HOSTS RANKS
 *
 * Status 0 where all of it is done. The devices are written as JSON.
 */
#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/integration/stock_json.h"
#include "test/integration/stock_status.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool done;
static pmix_status_t came;
static pmix_info_t *given; /* what the job's nodes are handed */
static size_t n_given;

static void on_done(pmix_status_t status, void *cbdata)
{
    (void)cbdata;
    pthread_mutex_lock(&lock);
    came = status;
    done = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void on_set_up(pmix_status_t status, pmix_info_t info[], size_t n, void *cbdata,
                      pmix_op_cbfunc_t release, void *release_data)
{
    PMIX_INFO_CREATE(given, n + 1);
    for (n_given = 0; n_given < n; n_given++)
        PMIX_INFO_XFER(&given[n_given], &info[n_given]);
    if (release != NULL)
        release(PMIX_SUCCESS, release_data);
    on_done(status, cbdata);
}

static void report(const char *what, pmix_status_t rc)
{
    printf("%s %s\n", what, stock_status(rc));
    if (rc == PMIX_SUCCESS)
        return;
    PMIx_server_finalize();
    exit(1);
}

static void report_later(const char *what, pmix_status_t rc)
{
    pthread_mutex_lock(&lock);
    while (rc == PMIX_SUCCESS && !done)
        pthread_cond_wait(&changed, &lock);
    done = false;
    pthread_mutex_unlock(&lock);
    report(what, rc == PMIX_SUCCESS ? came : rc);
}

static void set_up(const char *hosts, const char *ranks)
{
    pmix_info_t info[4], *network;
    pmix_data_array_t *array;
    pmix_nspace_t job;
    char *regex;
    report("hosts", PMIx_generate_regex(hosts, &regex));
    PMIX_INFO_LOAD(&info[0], PMIX_NODE_MAP, regex, PMIX_REGEX);
    free(regex);
    report("ranks", PMIx_generate_ppn(ranks, &regex));
    PMIX_INFO_LOAD(&info[1], PMIX_PROC_MAP, regex, PMIX_REGEX);
    free(regex);
    PMIX_DATA_ARRAY_CREATE(array, 2, PMIX_INFO);
    network = array->array;
    PMIX_INFO_LOAD(&network[0], PMIX_ALLOC_NETWORK_ID, "simple.net", PMIX_STRING);
    PMIX_INFO_LOAD(&network[1], PMIX_ALLOC_NETWORK_SEC_KEY, NULL, PMIX_BOOL);
    PMIX_INFO_CONSTRUCT(&info[2]);
    PMIX_LOAD_KEY(info[2].key, PMIX_ALLOC_NETWORK);
    info[2].value.type = PMIX_DATA_ARRAY;
    info[2].value.data.darray = array;
    PMIX_INFO_LOAD(&info[3], PMIX_SETUP_APP_ENVARS, NULL, PMIX_BOOL);
    PMIX_LOAD_NSPACE(job, "simple");
    report_later("application", PMIx_server_setup_application(job, info, 4, on_set_up, NULL));
    report_later("local support", PMIx_server_setup_local_support(job, given, n_given, on_done, NULL));
    for (size_t i = 0; i < 4; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
}

int main(int argc, char **argv)
{
    static pmix_server_module_t module; /* of a host that has no function at all */
    pmix_fabric_t fabric;
    pmix_value_t *value;
    pmix_info_t info;
    if (argc != 3)
        return 2;
    PMIX_INFO_LOAD(&info, PMIX_SERVER_SCHEDULER, NULL, PMIX_BOOL);
    report("init", PMIx_server_init(&module, &info, 1));
    PMIX_FABRIC_CONSTRUCT(&fabric);
    report("register", PMIx_Fabric_register(&fabric, NULL, 0));
    report("get", PMIx_Get(NULL, PMIX_FABRIC_DEVICES, NULL, 0, &value));
    print_value(value);
    printf("\n");
    set_up(argv[1], argv[2]);
    report("finalize", PMIx_server_finalize());
    return 0;
}
