/*
 * relay_host.c - a PMIx server as a node's part of a workload manager is one, with a relay in it: the ten
 * lines of docs/relay.md, marked "relay". Everything else would be there without them.
 *
 *   relay_host SCHEDULER [deadline=MILLISECONDS] [own-query] [job] [PROGRAM [ARGUMENT...]]
 *
 * SCHEDULER: a PMIx URI, or a run directory. Prints its own URI for tools ("uri ..."), starts PROGRAM as a
 * client of its own, and ends when its standard input does, or with the client and its status. own-query: the
 * server has a query function of its own. job: the client is rank 0 of a job that is told its fabric; ranks 0
 * and 2 are on node0001, which this is, 1 on node0002.
 */
#include <pmix.h>
#include <pmix_server.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmixfab.h" /* relay */

#include "test/integration/stock_lines.h"
#include "test/integration/stock_status.h"

static pmix_proc_t self;

static void tool_connected(pmix_info_t *info, size_t n, pmix_tool_connection_cbfunc_t cbfunc, void *cbdata)
{
    static unsigned last;
    pmix_proc_t tool;
    (void)info, (void)n;
    PMIX_PROC_CONSTRUCT(&tool);
    snprintf(tool.nspace, sizeof(tool.nspace), "%.200s.tool.%u", self.nspace, ++last);
    tool.rank = 0;
    cbfunc(PMIX_SUCCESS, &tool, cbdata);
}

static pmix_status_t client_connected(const pmix_proc_t *proc, void *object, pmix_info_t *info, size_t n,
                                      pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)proc, (void)object, (void)info, (void)n, (void)cbfunc, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t client_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t cbfunc,
                                      void *cbdata)
{
    (void)proc, (void)object, (void)cbfunc, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

static void own_answer_free(void *cbdata)
{
    pmix_info_t *info = cbdata;
    PMIX_INFO_FREE(info, 1);
}

/* Knows one key, "host.own"; others are for the relay. */
static pmix_status_t query(pmix_proc_t *requestor, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t cbfunc,
                           void *cbdata)
{
    if (n != 1 || queries->keys == NULL || strcmp(queries->keys[0], "host.own") != 0)
        return pmixfab_server_query(requestor, queries, n, cbfunc, cbdata); /* relay */
    pmix_info_t *info;
    PMIX_INFO_CREATE(info, 1);
    PMIX_INFO_LOAD(info, "host.own", "mine", PMIX_STRING);
    cbfunc(PMIX_SUCCESS, info, 1, cbdata, own_answer_free, info);
    return PMIX_SUCCESS;
}

static pmix_server_module_t module = {
    .client_connected2 = client_connected,
    .client_finalized = client_finalized,
    .tool_connected = tool_connected,
    .fabric = pmixfab_server_fabric, /* relay */
};

static void log_line(enum pmixfab_level level, const char *line, void *to) /* relay */
{                                                                          /* relay */
    fprintf(to, "%d %s\n", (int)level, line);                              /* relay */
} /* relay */

/* In a job it is node0001. */
static int start_server(bool own_query, bool job)
{
    char report[] = "/tmp/relay_host.XXXXXX", nspace[64];
    pmix_info_t info[5];
    bool yes = true;
    uint32_t rank = 0;
    size_t n = job ? 5 : 4;
    int fd = mkstemp(report);
    if (fd < 0)
        return 1;
    close(fd);
    snprintf(nspace, sizeof(nspace), "relayhost.%d", (int)getpid());
    if (own_query)
        module.query = query;
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TOOL_SUPPORT, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_SERVER_NSPACE, nspace, PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_SERVER_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&info[3], PMIX_TCP_REPORT_URI, report, PMIX_STRING);
    PMIX_INFO_LOAD(&info[4], PMIX_HOSTNAME, "node0001", PMIX_STRING);
    pmix_status_t rc = PMIx_server_init(&module, info, n);
    for (size_t i = 0; i < 5; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    if (rc != PMIX_SUCCESS) {
        fprintf(stderr, "PMIx_server_init: %s\n", stock_status(rc));
        return 1;
    }
    PMIX_LOAD_PROCID(&self, nspace, 0);
    print_own_uri(report);
    return 0;
}

/* ---- a client ----------------------------------------------------------------------------------- */

static int check(const char *what, pmix_status_t rc)
{
    if (rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED)
        return 0;
    fprintf(stderr, "%s: %s\n", what, stock_status(rc));
    return 1;
}

static int register_job(const char *nspace, bool job)
{
    pmix_info_t info[3];
    uint32_t size = 3;
    char *nodes, *ranks;
    if (check("regex", PMIx_generate_regex("node0001,node0002", &nodes)) != 0 ||
        check("ppn", PMIx_generate_ppn("0,2;1", &ranks)) != 0)
        return 1;
    PMIX_INFO_LOAD(&info[0], PMIX_JOB_SIZE, &size, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[1], PMIX_NODE_MAP, nodes, PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_PROC_MAP, ranks, PMIX_STRING);
    return check("register_nspace",
                 PMIx_server_register_nspace(nspace, 1, job ? info : NULL, job ? 3 : 0, NULL, NULL));
}

/* Its planes are opened long before a job is to start. */
static int tell_job(const char *nspace)
{
    struct pmixfab *fab;
    int rc = pmixfab_open_pmix(NULL, 0, &fab); /* launch */
    if (rc == 0)
        rc = pmixfab_tell_job(nspace, "node0001", (const struct pmixfab *[]){fab}, 1); /* launch */
    if (rc != 0)
        fprintf(stderr, "tell_job: %s\n", pmixfab_strerror(rc));
    pmixfab_close(fab); /* launch */
    return rc;
}

static int run_client(char **argv, bool job)
{
    extern char **environ;
    pmix_proc_t client;
    char **env = NULL;
    int status = 1;
    PMIX_LOAD_PROCID(&client, "relayjob", 0);
    if (register_job(client.nspace, job) != 0 || (job && tell_job(client.nspace) != 0) ||
        check("register_client",
              PMIx_server_register_client(&client, geteuid(), getegid(), NULL, NULL, NULL)) != 0)
        return 1;
    for (size_t i = 0; environ[i] != NULL; i++) {
        pmix_status_t rc;
        PMIX_ARGV_APPEND(rc, env, environ[i]);
        if (check("environment", rc) != 0)
            return 1;
    }
    if (check("setup_fork", PMIx_server_setup_fork(&client, &env)) != 0)
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        execve(argv[0], argv, env);
        _exit(127);
    }
    PMIX_ARGV_FREE(env);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    char line[64];
    int status = 0, next = 2;
    if (argc < 2)
        return 2;
    const bool deadline = argc > next && strncmp(argv[next], "deadline=", 9) == 0;
    if (deadline && pmixfab_relay_deadline((unsigned)strtoul(argv[next++] + 9, NULL, 10)) != PMIXFAB_OK)
        return 2;
    bool own_query = argc > next && strcmp(argv[next], "own-query") == 0;
    if (own_query)
        next++;
    bool job = argc > next && strcmp(argv[next], "job") == 0;
    if (job)
        next++;
    if (start_server(own_query, job) != 0)
        return 1;
    pmixfab_set_log(log_line, stderr);    /* relay */
    status = pmixfab_relay_open(argv[1]); /* relay */
    printf("ready\n");
    fflush(stdout);
    if (status == 0 && argc > next)
        status = run_client(&argv[next], job);
    else
        while (fgets(line, sizeof(line), stdin) != NULL)
            ;
    pmixfab_relay_close(); /* relay */
    PMIx_server_finalize();
    return status == 0 ? 0 : 1;
}
