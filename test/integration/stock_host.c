/*
 * stock_host.c - hosts a job's PMIx server as a launcher does, on one of the job's nodes, with nothing but
 * the stock library.
 *
 *   stock_host [OPTION...] HERE NODES RANKS PROGRAM [ARGUMENT...]
 *
 * HERE is this node's name. NODES "n1,n2" and RANKS "0,2;1,3" are the nodes and the ranks on each. PROGRAM is
 * started as each of the ranks on HERE; the status is 0 if that of all is.
 *
 *   -d          each rank's information says its node, too, and there are no maps
 *   -n          nobody says where the ranks are
 *   -f          has a fabric function of its own, which answers "host" as PMIX_FABRIC_VENDOR
 *   -q          has a query function of its own, which answers "host" to "host.own", and NOT-FOUND to others
 *   -c CPUSETS  "0-3;4-7": of the ranks on HERE
 *   -D NAME     the device that each rank is mapped to (PMIx 7)
 *   -s          is a scheduler, too, as the master of PRRTE is
 *   -m          asks for what the lowest rank on HERE puts, as for another node: "modex STATUS mine", and
 *               forgets that rank before the job: "deregister_client STATUS"
 *   -1          starts only the lowest rank on HERE
 *   -x          closes the library's framework pmdl at the end, and prints whether its functions are back
 *   -l          lives on behind the library's end: prints "finalized", and waits for the end of its input
 */
#include <dlfcn.h>
#include <pmix.h>
#include <pmix_server.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/integration/stock_status.h"

static const pmix_nspace_t job_name = "stockjob";
#define MAX_INFOS 65536

static bool data, nowhere, one, scheduler, closes, lingers, modex;
static const char *cpusets, *mapped;

/* ---- the host's functions --------------------------------------------------------------------------- */

static void host_free(void *cbdata)
{
    pmix_info_t *info = cbdata;
    PMIX_INFO_FREE(info, 1);
}

static void host_answer(const char *key, pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    pmix_info_t *info;
    PMIX_INFO_CREATE(info, 1);
    PMIX_INFO_LOAD(info, key, "host", PMIX_STRING);
    cbfunc(PMIX_SUCCESS, info, 1, cbdata, host_free, info);
}

static pmix_status_t host_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                                 const pmix_info_t directives[], size_t n, pmix_info_cbfunc_t cbfunc,
                                 void *cbdata)
{
    (void)requestor, (void)op, (void)directives, (void)n;
    host_answer(PMIX_FABRIC_VENDOR, cbfunc, cbdata);
    return PMIX_SUCCESS;
}

static pmix_status_t host_query(pmix_proc_t *requestor, pmix_query_t *queries, size_t n,
                                pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    (void)requestor;
    if (n != 1 || queries->keys == NULL || strcmp(queries->keys[0], "host.own") != 0)
        return PMIX_ERR_NOT_FOUND;
    host_answer("host.own", cbfunc, cbdata);
    return PMIX_SUCCESS;
}

static pmix_status_t host_connected(const pmix_proc_t *proc, void *object, pmix_info_t *info, size_t n,
                                    pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)proc, (void)object, (void)info, (void)n, (void)cbfunc, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t host_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t cbfunc,
                                    void *cbdata)
{
    (void)proc, (void)object, (void)cbfunc, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_server_module_t functions = {.client_connected2 = host_connected,
                                         .client_finalized = host_finalized};

static int host_fail(const char *what, pmix_status_t rc)
{
    if (rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED)
        return 0;
    fprintf(stderr, "stock_host: %s: %s\n", what, stock_status(rc));
    return 1;
}

/* ---- the job ---------------------------------------------------------------------------------------- */

/* Number i of a list; false past its end. */
static bool word(const char *list, char end, size_t i, char *out, size_t size)
{
    for (; i > 0; i--) {
        list = strchr(list, end);
        if (list == NULL)
            return false;
        list++;
    }
    snprintf(out, size, "%.*s", (int)(strchrnul(list, end) - list), list);
    return true;
}

static uint32_t count_ranks(const char *ranks)
{
    uint32_t n = ranks[0] != '\0';
    for (; *ranks != '\0'; ranks++)
        n += *ranks == ',' || *ranks == ';';
    return n;
}

static void load_regex(pmix_info_t *info, const char *key, const char *text,
                       pmix_status_t (*make)(const char *, char **))
{
#ifdef PMIX_REGEX2 /* from 7 on: what is compressed is no string */
    pmix_regex2_t map;
    (void)make;
    if (host_fail(key, PMIx_generate_regex2(text, NULL, 0, &map)) != 0)
        exit(1);
    PMIX_INFO_LOAD(info, key, &map, PMIX_REGEX2);
    PMIx_Regex2_destruct(&map);
#else
    char *regex = NULL;
    if (host_fail(key, make(text, &regex)) != 0)
        exit(1);
    PMIX_INFO_LOAD(info, key, regex, PMIX_STRING);
    free(regex);
#endif
}

/* What a launcher says of one rank. */
static void load_rank(pmix_info_t *info, pmix_rank_t rank, const char *host, const char *cpuset)
{
    pmix_info_t *infos;
    uint32_t app = 7;
    size_t n = 2;
    PMIX_LOAD_KEY(info->key, PMIX_PROC_DATA);
    info->value.type = PMIX_DATA_ARRAY;
    PMIX_DATA_ARRAY_CREATE(info->value.data.darray, 2 + (host != NULL) + (cpuset != NULL) + (mapped != NULL),
                           PMIX_INFO);
    infos = info->value.data.darray->array;
    PMIX_INFO_LOAD(&infos[0], PMIX_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&infos[1], PMIX_APPNUM, &app, PMIX_UINT32);
    if (host != NULL)
        PMIX_INFO_LOAD(&infos[n++], PMIX_HOSTNAME, host, PMIX_STRING);
    if (cpuset != NULL)
        PMIX_INFO_LOAD(&infos[n++], PMIX_CPUSET, cpuset, PMIX_STRING);
#if PMIX_VERSION_MAJOR >= 7
    if (mapped != NULL) {
        pmix_data_array_t *devices = &(pmix_data_array_t){.type = PMIX_DEVICE, .size = 1};
        pmix_device_t device = {.osname = (char *)mapped, .type = PMIX_DEVTYPE_OPENFABRICS};
        devices->array = &device;
        PMIX_INFO_LOAD(&infos[n++], PMIX_DEVICE_ID, devices, PMIX_DATA_ARRAY);
    }
#endif
}

static size_t load_ranks(pmix_info_t *infos, const char *here, const char *nodes, const char *ranks)
{
    static char of_node[1u << 20];
    char node[256], rank[16], cpuset[256];
    size_t n = 0;
    for (size_t i = 0; word(nodes, ',', i, node, sizeof(node)); i++) {
        if (!word(ranks, ';', i, of_node, sizeof(of_node)))
            break;
        for (size_t k = 0; n < MAX_INFOS && word(of_node, ',', k, rank, sizeof(rank)); k++) {
            bool bound =
                cpusets != NULL && strcmp(node, here) == 0 && word(cpusets, ';', k, cpuset, sizeof(cpuset));
            if (data || bound || mapped != NULL)
                load_rank(&infos[n++], (pmix_rank_t)atol(rank), data ? node : NULL, bound ? cpuset : NULL);
        }
    }
    return n;
}

static int register_job(const char *here, const char *nodes, const char *ranks, int local)
{
    pmix_info_t *infos;
    uint32_t size = count_ranks(ranks);
    size_t n = 1;
    PMIX_INFO_CREATE(infos, MAX_INFOS + 3);
    PMIX_INFO_LOAD(&infos[0], PMIX_JOB_SIZE, &size, PMIX_UINT32);
    if (!data && !nowhere) {
        load_regex(&infos[n++], PMIX_NODE_MAP, nodes, PMIx_generate_regex);
        load_regex(&infos[n++], PMIX_PROC_MAP, ranks, PMIx_generate_ppn);
    }
    n += load_ranks(&infos[n], here, nodes, ranks);
    pmix_status_t rc = PMIx_server_register_nspace(job_name, local, infos, n, NULL, NULL);
    PMIX_INFO_FREE(infos, MAX_INFOS + 3);
    return host_fail("register_nspace", rc);
}

/* ---- its processes ---------------------------------------------------------------------------------- */

static pid_t start_rank(pmix_rank_t rank, char **argv)
{
    extern char **environ;
    pmix_proc_t proc;
    char **env = NULL;
    pmix_status_t rc = PMIX_SUCCESS;
    PMIX_LOAD_PROCID(&proc, job_name, rank);
    if (host_fail("register_client",
                  PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, NULL, NULL)) != 0)
        return -1;
    for (size_t i = 0; environ[i] != NULL && rc == PMIX_SUCCESS; i++)
        PMIX_ARGV_APPEND(rc, env, environ[i]);
    if (host_fail("environment", rc) != 0 ||
        host_fail("setup_fork", PMIx_server_setup_fork(&proc, &env)) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        execve(argv[0], argv, env);
        _exit(127);
    }
    PMIX_ARGV_FREE(env);
    return pid;
}

/* On the library's thread, when the process has committed what it put. */
static void on_modex(pmix_status_t status, char *bytes, size_t size, void *cbdata)
{
    (void)cbdata;
    printf("modex %s %s\n", stock_status(status),
           bytes != NULL && memmem(bytes, size, "mine", 4) != NULL ? "mine" : "-");
    fflush(stdout);
}

static int ask_modex(const char *local)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, job_name, (pmix_rank_t)atol(local));
    return host_fail("dmodex_request", PMIx_server_dmodex_request(&proc, on_modex, NULL));
}

static void on_forgotten(pmix_status_t status, void *done)
{
    printf("deregister_client %s\n", stock_status(status));
    fflush(stdout);
    sem_post(done);
}

static void forget_client(const char *local)
{
    pmix_proc_t proc;
    sem_t done;
    sem_init(&done, 0, 0);
    PMIX_LOAD_PROCID(&proc, job_name, (pmix_rank_t)atol(local));
    PMIx_server_deregister_client(&proc, on_forgotten, &done);
    sem_wait(&done);
    sem_destroy(&done);
}

static int run_job(const char *local, char **argv)
{
    char rank[16];
    int failed = 0, status;
    if (modex)
        failed = ask_modex(local);
    for (size_t i = 0; local[0] != '\0' && !(one && i > 0) && word(local, ',', i, rank, sizeof(rank)); i++)
        failed |= start_rank((pmix_rank_t)atol(rank), argv) < 0;
    while (wait(&status) > 0)
        failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    if (modex)
        forget_client(local);
    return failed;
}

static int work(const char *here, const char *nodes, const char *ranks, char **argv)
{
    static char local[1u << 20];
    char node[256];
    for (size_t i = 0; word(nodes, ',', i, node, sizeof(node)); i++)
        if (strcmp(node, here) == 0)
            word(ranks, ';', i, local, sizeof(local));
    int failed = register_job(here, nodes, ranks, (int)count_ranks(local));
    if (failed == 0)
        failed = run_job(local, argv);
    PMIx_server_deregister_nspace(job_name, NULL, NULL);
    return failed;
}

/* By what the library exports and has no public header for. */
static void close_components(void)
{
    int (*end)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "pmix_mca_base_framework_close");
    const pmix_server_module_t *now = dlsym(RTLD_DEFAULT, "pmix_host_server");
    end(dlsym(RTLD_DEFAULT, "pmix_pmdl_base_framework"));
    if (now->fabric == functions.fabric && now->query == functions.query)
        puts("as they were");
}

static int host(char **args)
{
    pmix_info_t info[2];
    PMIX_INFO_LOAD(&info[0], PMIX_HOSTNAME, args[0], PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SERVER_SCHEDULER, &scheduler, PMIX_BOOL);
    if (host_fail("PMIx_server_init", PMIx_server_init(&functions, info, scheduler ? 2 : 1)) != 0)
        return 1;
    int failed = work(args[0], args[1], args[2], args + 3);
    if (closes)
        close_components();
    PMIx_server_finalize();
    return failed;
}

int main(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "+dnfqxlsm1c:D:")) != -1) {
        data |= option == 'd';
        nowhere |= option == 'n';
        one |= option == '1';
        scheduler |= option == 's';
        closes |= option == 'x';
        lingers |= option == 'l';
        modex |= option == 'm';
        if (option == 'f')
            functions.fabric = host_fabric;
        if (option == 'q')
            functions.query = host_query;
        if (option == 'c')
            cpusets = optarg;
        if (option == 'D')
            mapped = optarg;
    }
    if (argc - optind < 4)
        return 2;
    char **args = argv + optind;
    int failed = host(args);
    if (lingers && puts("finalized") >= 0 && fflush(stdout) == 0)
        while (getchar() != EOF)
            ;
    return failed;
}
