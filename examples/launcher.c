/*
 * launcher.c - the starter of a job and the daemon of each of its nodes, with the PMIx library only: the
 * calls of a launcher, and their order, so that processes have the fabric's data at their start.
 *
 *   launcher AGENT NODE[,NODE...] ENDPOINTS PER_NODE PROGRAM [ARGUMENT...]
 *
 *   launcher ssh node1,node2 2 8 /opt/bin/instant_on
 *
 * Each process gets ENDPOINTS endpoints on each of its devices. The starter runs `AGENT NODE launcher -d ...`
 * for each node; with the agent "-" all run on this host. A daemon ends its part of the job when its input is
 * closed, by whatever cause. A real launcher also gives processes time to end, passes its own input to one of
 * them, and answers all their requests to the server.
 */
#include <fcntl.h>
#include <pmix.h>
#include <pmix_server.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(call) check(#call, call)

extern char **environ;
static pmix_nspace_t job;
static uint32_t per_node;

/* Of the PMIx library, and of the system, whose -1 is PMIX_ERROR. */
static void check(const char *what, pmix_status_t status)
{
    if (status >= 0 || status == PMIX_OPERATION_SUCCEEDED)
        return;
    fprintf(stderr, "launcher: %s: %s (%d)\n", what, PMIx_Error_string(status), status);
    exit(1);
}

/* Start a child, which the kernel kills if this process is killed. */
static void start(char **program, char **env, int input, pid_t group)
{
    const pid_t pid = fork();
    setpgid(pid, group); /* in both processes, because either may be first */
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(input, 0);
        signal(SIGPIPE, SIG_DFL);
        execvpe(program[0], program, env);
        perror(program[0]);
        _exit(127);
    }
    check("fork", pid);
}

/* ---- the starter ------------------------------------------------------------------------------------ */

static pmix_info_t info[5]; /* the first three are what a node registers the job with */
static pmix_byte_object_t message;
static sem_t is_set_up;

static void on_setup(pmix_status_t status, pmix_info_t launch[], size_t n, void *unused,
                     pmix_op_cbfunc_t done, void *with)
{
    pmix_data_array_t parts[] = {{PMIX_INFO, 3, info}, {PMIX_INFO, n, launch}};
    pmix_data_buffer_t buffer;
    (void)unused;
    check("PMIx_server_setup_application", status);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    CHECK(PMIx_Data_pack(NULL, &buffer, parts, 2, PMIX_DATA_ARRAY));
    CHECK(PMIx_Data_unload(&buffer, &message));
    sem_post(&is_set_up);
    if (done != NULL)
        done(PMIX_SUCCESS, with);
}

static void set_up(const char *nodes, uint32_t size, size_t endpoints)
{
    char *ranks = calloc(size, sizeof("4294967295,")), *at = ranks, *map; /* of each node: "0,1;2,3" */
    pmix_info_t network;
    pmix_data_array_t wanted = {PMIX_INFO, 1, &network};
    for (uint32_t rank = 0; rank < size; rank++)
        at += sprintf(at, "%s%u", rank == 0 ? "" : rank % per_node == 0 ? ";" : ",", rank);
    CHECK(PMIx_generate_regex(nodes, &map));
    PMIX_INFO_LOAD(&info[0], PMIX_NODE_MAP, map, PMIX_REGEX);
    free(map);
    CHECK(PMIx_generate_ppn(ranks, &map));
    PMIX_INFO_LOAD(&info[1], PMIX_PROC_MAP, map, PMIX_REGEX);
    free(map);
    free(ranks);
    PMIX_INFO_LOAD(&info[2], PMIX_JOB_SIZE, &size, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[3], PMIX_SETUP_APP_ALL, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&network, PMIX_ALLOC_FABRIC_ENDPTS, &endpoints, PMIX_SIZE);
    PMIX_INFO_REQUIRED(&network); /* no job rather than one without them */
    PMIX_INFO_LOAD(&info[4], PMIX_ALLOC_FABRIC, &wanted, PMIX_DATA_ARRAY);
    sem_init(&is_set_up, 0, 0);
    CHECK(PMIx_server_setup_application(job, info, endpoints > 0 ? 5 : 4, on_setup, NULL));
    sem_wait(&is_set_up);
}

static int run_job(char **argv)
{
    static pmix_server_module_t module;
    char *nodes = argv[2];
    uint32_t n = 1;
    int status, failed = 0;
    for (const char *at = nodes; *at != '\0'; at++)
        n += *at == ',';
    int *inputs = calloc(n, sizeof(*inputs)), ends[2];
    snprintf(job, sizeof(job), "launcher.%d", (int)getpid());
    signal(SIGPIPE, SIG_IGN); /* the loss of a daemon is seen by its status */
    CHECK(PMIx_server_init(&module, NULL, 0));
    set_up(nodes, n * per_node, strtoul(argv[3], NULL, 10));
    memcpy(argv, (char *[]){argv[1], "NODE", argv[0], "-d"}, 4 * sizeof(*argv)); /* PER_NODE PROGRAM ... */
    for (uint32_t i = 0; i < n; i++) {
        argv[1] = strsep(&nodes, ",");
        CHECK(pipe2(ends, O_CLOEXEC)); /* no daemon may inherit the input of another one */
        start(strcmp(argv[0], "-") == 0 ? argv + 2 : argv, environ, ends[0], getpgrp());
        close(ends[0]);
        inputs[i] = ends[1];
        dprintf(inputs[i], "%s %s %u %zu\n", job, argv[1], i * per_node, message.size);
        if (write(inputs[i], message.bytes, message.size) < 0)
            perror(argv[1]);
    }
    while (wait(&status) > 0)
        for (failed |= status != 0; failed && n > 0; n--) /* the others end with their input */
            close(inputs[n - 1]);
    free(inputs);
    return failed;
}

/* ---- a node's daemon -------------------------------------------------------------------------------- */

static char here[256];
static pid_t watcher; /* a child that ends when the job has to, for wait(); it leads the processes' group */

static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status, const char text[],
                              pmix_proc_t procs[], size_t n, pmix_op_cbfunc_t done, void *with)
{
    (void)object, (void)procs, (void)n, (void)done, (void)with;
    fprintf(stderr, "launcher: %s: rank %u aborts with %d: %s\n", here, proc->rank, status, text ? text : "");
    kill(watcher, SIGTERM);
    return PMIX_OPERATION_SUCCEEDED;
}

static void register_job(size_t size)
{
    pmix_byte_object_t bytes = {malloc(size), size};
    pmix_data_array_t parts[2];
    pmix_data_buffer_t buffer;
    int32_t n = 2;
    if (bytes.bytes == NULL || fread(bytes.bytes, 1, size, stdin) != size)
        check("standard input", PMIX_ERR_UNPACK_FAILURE);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    CHECK(PMIx_Data_load(&buffer, &bytes));
    CHECK(PMIx_Data_unpack(NULL, &buffer, parts, &n, PMIX_DATA_ARRAY));
    CHECK(PMIx_server_register_nspace(job, (int)per_node, parts[0].array, parts[0].size, NULL, NULL));
    CHECK(PMIx_server_setup_local_support(job, parts[1].array, parts[1].size, NULL, NULL));
    PMIX_DATA_ARRAY_DESTRUCT(&parts[0]);
    PMIX_DATA_ARRAY_DESTRUCT(&parts[1]);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
}

static int run_node(char **program)
{
    static pmix_server_module_t module = {.abort = on_abort};
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    pmix_info_t name;
    pmix_rank_t first;
    pid_t pid = 0;
    size_t size;
    int status = 0;
    if (scanf("%255s %255s %u %zu%*c", job, here, &first, &size) != 4)
        check("standard input", PMIX_ERR_UNPACK_FAILURE);
    PMIX_INFO_LOAD(&name, PMIX_HOSTNAME, here, PMIX_STRING); /* as in the job's map */
    CHECK(PMIx_server_init(&module, &name, 1));
    register_job(size);
    CHECK(watcher = fork());
    if (watcher == 0) {
        while (read(0, &size, 1) > 0)
            ;
        _exit(1);
    }
    CHECK(setpgid(watcher, watcher));
    for (uint32_t i = 0; i < per_node; i++) {
        pmix_status_t rc = PMIX_SUCCESS;
        pmix_proc_t proc;
        char **env = NULL;
        for (char **at = environ; *at != NULL && rc == PMIX_SUCCESS; at++)
            PMIX_ARGV_APPEND(rc, env, *at);
        check("the environment", rc);
        PMIX_LOAD_PROCID(&proc, job, first + i);
        CHECK(PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, NULL, NULL));
        CHECK(PMIx_server_setup_fork(&proc, &env));
        start(program, env, nothing, watcher);
        PMIX_ARGV_FREE(env);
    }
    for (uint32_t left = per_node; left > 0 && status == 0; left--)
        pid = wait(&status);
    if (status != 0 && pid != watcher)
        fprintf(stderr, "launcher: %s: process %d ends with status %d, signal %d\n", here, (int)pid,
                WEXITSTATUS(status), WTERMSIG(status));
    kill(-watcher, SIGKILL); /* and with it all processes and their children */
    return status != 0;
}

int main(int argc, char **argv)
{
    const int is_daemon = argc > 3 && strcmp(argv[1], "-d") == 0;
    if (is_daemon || argc > 5)
        per_node = (uint32_t)strtoul(argv[is_daemon ? 2 : 4], NULL, 10);
    if (per_node == 0) {
        fprintf(stderr, "usage: launcher AGENT NODE[,NODE...] ENDPOINTS PER_NODE PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    const int failed = is_daemon ? run_node(argv + 3) : run_job(argv);
    PMIx_server_deregister_nspace(job, NULL, NULL); /* the starter's call releases the endpoints */
    PMIx_server_finalize();
    return failed;
}
