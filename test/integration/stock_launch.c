/*
 * stock_launch.c - a process of a job that knows only the stock PMIx library, and tells what it knows at its
 * start.
 *
 *   stock_launch FOLDER [HOST...]
 *
 * Writes FOLDER/RANK, one JSON value a line (stock_json.h). The first is what the process was told without
 * asking anybody (PMIX_OPTIONAL), a value or {"status": "NOT-FOUND"}: for the job, for each rank and each
 * HOST the keys below. "devices" are those of the HOSTs, each asked for by its id. "reader" is what an MPI
 * library reads that takes a rank's coordinates for three numbers before it looks at the type; "queries" are
 * PMIx_Query_info() of the server for a key of the fabric, and for one that some hosts of the tests know;
 * "register" is PMIx_Fabric_register().
 *
 * The last line is {"deregister": ...}, of PMIx_Fabric_deregister().
 *
 * Where FOLDER/commands is a file, each line that comes into it is done, by every rank:
 *   update N   a line {"update": N, "status": ..., "attributes": ...}
 *   end        the process ends; until then events are written as lines, too
 */
#include <pmix.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/integration/stock_json.h"
#include "test/integration/stock_status.h"

static const char *const of_rank[] = {PMIX_HOSTNAME,      PMIX_FABRIC_COORDINATES, PMIX_FABRIC_DEVICES,
                                      PMIX_FABRIC_SWITCH, PMIX_FABRIC_NUM_DEVICES, PMIX_SWITCH_PEERS,
                                      PMIX_FABRIC_ENDPT,  "fabricd.nearest"};
static const char *const of_node[] = {PMIX_FABRIC_COORDINATES, PMIX_FABRIC_DEVICES, PMIX_FABRIC_SWITCH,
                                      PMIX_FABRIC_NUM_DEVICES};
static const char *const of_job[] = {PMIX_FABRIC_PLANE,    "fabricd.generation",     PMIX_FABRIC_DIMS,
                                     PMIX_FABRIC_SHAPE,    PMIX_FABRIC_SHAPE_STRING, PMIX_FABRIC_GROUPS,
                                     PMIX_FABRIC_VENDOR,   PMIX_FABRIC_IDENTIFIER,   PMIX_FABRIC_INDEX,
                                     "fabricd.coordinates"};
static const char *const of_server[] = {PMIX_FABRIC_GROUPS, "host.own"};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the output: events come on another thread */
static pmix_proc_t self;

/* "KEY":value, from what this process has already. */
static void put_key(const char *key, pmix_rank_t rank, const pmix_info_t *more, size_t n)
{
    pmix_info_t info[8];
    pmix_proc_t proc;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&proc, self.nspace, rank);
    memcpy(info, more, n * sizeof(*more));
    PMIX_INFO_LOAD(&info[n], PMIX_OPTIONAL, NULL, PMIX_BOOL);
    pmix_status_t rc = PMIx_Get(&proc, key, info, n + 1, &value);
    print_string(key);
    putchar(':');
    if (rc == PMIX_SUCCESS)
        print_value(value);
    else
        printf("{\"status\":\"%s\"}", stock_status(rc));
    if (value != NULL)
        PMIX_VALUE_RELEASE(value);
    PMIX_INFO_DESTRUCT(&info[n]);
}

static void put_keys(const char *const keys[], size_t n_keys, pmix_rank_t rank, const char *host)
{
    pmix_info_t info[2];
    if (host != NULL) {
        PMIX_INFO_LOAD(&info[0], PMIX_HOSTNAME, host, PMIX_STRING);
        PMIX_INFO_LOAD(&info[1], PMIX_NODE_INFO, NULL, PMIX_BOOL);
    }
    putchar('{');
    for (size_t i = 0; i < n_keys; i++) {
        fputs(i == 0 ? "" : ",", stdout);
        put_key(keys[i], rank, info, host == NULL ? 0 : 2);
    }
    putchar('}');
}

/* As an MPI library reads: dims of whatever it was given, which has to be 3, and only then the type. Numbers
 * in the order port, switch, group. Without any directive, so the server may be asked. */
static void put_reader(uint32_t n_ranks)
{
    pmix_proc_t proc;
    PMIX_PROC_CONSTRUCT(&proc);
    strcpy(proc.nspace, self.nspace);
    putchar('[');
    for (uint32_t rank = 0; rank < n_ranks; rank++) {
        pmix_value_t *value = NULL;
        proc.rank = rank;
        fputs(rank == 0 ? "" : ",", stdout);
        if (PMIx_Get(&proc, PMIX_FABRIC_COORDINATES, NULL, 0, &value) != PMIX_SUCCESS) {
            fputs("null", stdout);
            continue;
        }
        if (value->data.coord->dims != 3) {
            printf("\"dims %zu\"", value->data.coord->dims);
        } else if (value->type == PMIX_COORD) {
            const uint32_t *coord = value->data.coord->coord;
            printf("[%u,%u,%u]", coord[2], coord[1], coord[0]);
        } else {
            printf("\"type %d\"", (int)value->type);
        }
        PMIX_VALUE_RELEASE(value);
    }
    putchar(']');
}

/* "ID":value, of each device of a host: PMIX_FABRIC_DEVICE by that id, which is marked as a qualifier. */
static void put_by_id(const char *host)
{
    pmix_info_t info[3];
    pmix_proc_t proc;
    pmix_value_t *devices = NULL;
    PMIX_LOAD_PROCID(&proc, self.nspace, PMIX_RANK_UNDEF);
    PMIX_INFO_LOAD(&info[0], PMIX_HOSTNAME, host, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_NODE_INFO, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[2], PMIX_OPTIONAL, NULL, PMIX_BOOL);
    if (PMIx_Get(&proc, PMIX_FABRIC_DEVICES, info, 3, &devices) != PMIX_SUCCESS)
        return;
    proc.rank = PMIX_RANK_WILDCARD;
    for (size_t i = 0; i < devices->data.darray->size; i++) {
        const pmix_info_t *device = (pmix_info_t *)devices->data.darray->array + i;
        const char *id = ((pmix_info_t *)device->value.data.darray->array)[0].value.data.string;
        pmix_value_t *value = NULL;
        PMIX_INFO_LOAD(&info[0], PMIX_DEVICE_ID, id, PMIX_STRING);
        PMIX_INFO_SET_QUALIFIER(&info[0]);
        /* from 7 on it would wait for ranks that nobody has started */
        PMIX_INFO_LOAD(&info[1], PMIX_IMMEDIATE, NULL, PMIX_BOOL);
        if (PMIx_Get(&proc, PMIX_FABRIC_DEVICE, info, PMIX_VERSION_MAJOR < 7 ? 1 : 2, &value) != PMIX_SUCCESS)
            continue;
        fputs(",", stdout);
        print_string(id);
        putchar(':');
        print_value(value);
        PMIX_VALUE_RELEASE(value);
    }
    PMIX_VALUE_RELEASE(devices);
}

/* From the server, whatever this process has been told. */
static void put_query(const char *key)
{
    pmix_query_t *query;
    pmix_info_t *info = NULL;
    size_t n = 0;
    pmix_status_t rc;
    PMIX_QUERY_CREATE(query, 1);
    PMIX_ARGV_APPEND(rc, query->keys, key);
    PMIX_QUERY_QUALIFIERS_CREATE(query, 1);
    PMIX_INFO_LOAD(&query->qualifiers[0], PMIX_QUERY_REFRESH_CACHE, NULL, PMIX_BOOL);
    rc = PMIx_Query_info(query, 1, &info, &n);
    print_string(key);
    putchar(':');
    if (rc == PMIX_SUCCESS && n == 1)
        print_value(&info->value);
    else
        printf("{\"status\":\"%s\"}", stock_status(rc));
    PMIX_QUERY_FREE(query, 1);
    if (info != NULL)
        PMIX_INFO_FREE(info, n);
}

static void put_queries(void)
{
    putchar('{');
    for (size_t i = 0; i < COUNT(of_server); i++) {
        fputs(i == 0 ? "" : ",", stdout);
        put_query(of_server[i]);
    }
    putchar('}');
}

static void put_fabric(const pmix_fabric_t *fabric, pmix_status_t rc)
{
    printf("\"status\":\"%s\",\"attributes\":", stock_status(rc));
    print_infos(fabric->info, fabric->ninfo);
}

static uint32_t job_size(void)
{
    pmix_proc_t proc;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&proc, self.nspace, PMIX_RANK_WILDCARD);
    if (PMIx_Get(&proc, PMIX_JOB_SIZE, NULL, 0, &value) != PMIX_SUCCESS)
        return 0;
    uint32_t n = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return n;
}

static void put_facts(char *const hosts[], int n_hosts)
{
    uint32_t n_ranks = job_size();
    printf("{\"rank\":%u,\"size\":%u,\"job\":", self.rank, n_ranks);
    put_keys(of_job, COUNT(of_job), PMIX_RANK_WILDCARD, NULL);
    fputs(",\"ranks\":[", stdout);
    for (uint32_t rank = 0; rank < n_ranks; rank++) {
        fputs(rank == 0 ? "" : ",", stdout);
        put_keys(of_rank, COUNT(of_rank), rank, NULL);
    }
    fputs("],\"nodes\":{", stdout);
    for (int i = 0; i < n_hosts; i++) {
        fputs(i == 0 ? "" : ",", stdout);
        print_string(hosts[i]);
        putchar(':');
        put_keys(of_node, COUNT(of_node), PMIX_RANK_UNDEF, hosts[i]);
    }
    fputs("},\"devices\":{\"\":null", stdout);
    for (int i = 0; i < n_hosts; i++)
        put_by_id(hosts[i]);
    fputs("},\"reader\":", stdout);
    put_reader(n_ranks);
}

static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                     size_t n, pmix_info_t *results, size_t nresults,
                     pmix_event_notification_cbfunc_fn_t cbfunc, void *cbdata)
{
    (void)handler, (void)source, (void)results, (void)nresults;
    pthread_mutex_lock(&lock);
    printf("{\"event\":\"%s\"",
           status == PMIX_FABRIC_UPDATED ? "PMIX_FABRIC_UPDATED" : "PMIX_FABRIC_UPDATE_PENDING");
    for (size_t i = 0; i < n; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_FABRIC_INDEX) || PMIX_CHECK_KEY(&info[i], PMIX_FABRIC_PLANE) ||
            PMIX_CHECK_KEY(&info[i], "pmixfab.generation")) {
            putchar(',');
            print_string(info[i].key);
            putchar(':');
            print_value(&info[i].value);
        }
    fputs("}\n", stdout);
    fflush(stdout);
    pthread_mutex_unlock(&lock);
    if (cbfunc != NULL)
        cbfunc(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

/* Do what the file of commands says until that is to end. */
static void obey(FILE *commands, pmix_fabric_t *fabric)
{
    char line[64];
    for (;;) {
        if (fgets(line, sizeof(line), commands) == NULL) {
            clearerr(commands);
            usleep(5000);
            continue;
        }
        if (strcmp(line, "end\n") == 0)
            return;
        fabric->info = NULL; /* the library does not free what was there */
        fabric->ninfo = 0;
        pmix_status_t rc = PMIx_Fabric_update(fabric);
        pthread_mutex_lock(&lock);
        printf("{\"update\":%d,", atoi(line + strlen("update ")));
        put_fabric(fabric, rc);
        fputs("}\n", stdout);
        fflush(stdout);
        pthread_mutex_unlock(&lock);
    }
}

int main(int argc, char **argv)
{
    pmix_status_t codes[] = {PMIX_FABRIC_UPDATE_PENDING, PMIX_FABRIC_UPDATED};
    char path[4096];
    pmix_fabric_t fabric;
    if (argc < 2)
        return 2;
    pmix_status_t rc = PMIx_Init(&self, NULL, 0);
    if (rc != PMIX_SUCCESS) {
        fprintf(stderr, "PMIx_Init: %s\n", stock_status(rc));
        return 1;
    }
    snprintf(path, sizeof(path), "%s/%u", argv[1], self.rank);
    if (freopen(path, "w", stdout) == NULL) {
        perror(path);
        return 1;
    }
    put_facts(argv + 2, argc - 2);
    fputs(",\"queries\":", stdout);
    put_queries();
    PMIX_FABRIC_CONSTRUCT(&fabric);
    rc = PMIx_Fabric_register(&fabric, NULL, 0);
    fputs(",\"register\":{", stdout);
    put_fabric(&fabric, rc);
    fputs("}}\n", stdout);
    snprintf(path, sizeof(path), "%s/commands", argv[1]);
    FILE *commands = fopen(path, "r");
    if (commands != NULL) {
        rc = PMIx_Register_event_handler(codes, 2, NULL, 0, on_event, NULL, NULL);
        pthread_mutex_lock(&lock);
        printf("{\"watching\":%d}\n", rc);
        fflush(stdout);
        pthread_mutex_unlock(&lock);
        obey(commands, &fabric);
        fclose(commands);
    }
    printf("{\"deregister\":\"%s\"}\n", stock_status(PMIx_Fabric_deregister(&fabric)));
    fflush(stdout);
    return PMIx_Finalize(NULL, 0) == PMIX_SUCCESS ? 0 : 1;
}
