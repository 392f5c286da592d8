/*
 * launcher.c - the starter of a job and the daemon of each of its nodes, with nothing but the PMIx library:
 * which calls a launcher makes, and in which order, so that processes know their fabric at their first line.
 *
 *   launcher [-a AGENT] NODES RANKS PROGRAM [ARGUMENT...]
 *
 *   launcher -a ssh node1,node2 "0,1;2,3" ./instant_on
 *
 * The starter asks its library for the launch information, and starts `AGENT NODE launcher ...` for each node
 * with that on its standard input; without an agent, the daemon itself on this host. Each daemon starts its
 * node's ranks. The status is 0 if that of every process is.
 */
#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *node_list, *rank_list; /* "n1,n2" and "0,1;2,3" */
static char folder[4096];

static void check(const char *what, pmix_status_t status)
{
    if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED)
        return;
    fprintf(stderr, "launcher: %s: %s\n", what, PMIx_Error_string(status));
    exit(1);
}

static void start_library(const char *node)
{
    static pmix_server_module_t none; /* a real one has functions for what its processes ask */
    pmix_info_t info[2];
    snprintf(folder, sizeof(folder),
             "/tmp/launcher.XXXXXX"); /* daemons of one job on one host must not share it */
    if (mkdtemp(folder) == NULL)
        perror(folder);
    PMIX_INFO_LOAD(&info[0], PMIX_HOSTNAME, node, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SERVER_TMPDIR, folder, PMIX_STRING);
    check("PMIx_server_init", PMIx_server_init(&none, info, 2));
}

static void end_library(void)
{
    PMIx_server_finalize();
    rmdir(folder);
}

static void load_maps(pmix_info_t info[2])
{
    char *nodes, *ranks;
    check("PMIx_generate_regex", PMIx_generate_regex(node_list, &nodes));
    check("PMIx_generate_ppn", PMIx_generate_ppn(rank_list, &ranks));
    PMIX_INFO_LOAD(&info[0], PMIX_NODE_MAP, nodes, PMIX_REGEX);
    PMIX_INFO_LOAD(&info[1], PMIX_PROC_MAP, ranks, PMIX_REGEX);
}

/* Calls back for each rank of a node; returns how many it has. */
static uint32_t each_rank(int node, void (*call)(pmix_rank_t rank, void *), void *with)
{
    const char *at = rank_list;
    uint32_t n = 0;
    while (node-- > 0)
        at = strchr(at, ';') + 1;
    for (char *end;; at = end + 1, n++) {
        const pmix_rank_t rank = (pmix_rank_t)strtoul(at, &end, 10);
        if (call != NULL)
            call(rank, with);
        if (*end != ',')
            return n + 1;
    }
}

/* ---- the starter ------------------------------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static pmix_byte_object_t message; /* the job's name and its launch information */

static void on_setup(pmix_status_t status, pmix_info_t info[], size_t n, void *job, pmix_op_cbfunc_t done,
                     void *with)
{
    pmix_data_buffer_t buffer;
    check("PMIx_server_setup_application", status);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    check("PMIx_Data_pack", PMIx_Data_pack(NULL, &buffer, &job, 1, PMIX_STRING));
    check("PMIx_Data_pack", PMIx_Data_pack(NULL, &buffer, &n, 1, PMIX_SIZE));
    if (n > 0)
        check("PMIx_Data_pack", PMIx_Data_pack(NULL, &buffer, info, (int32_t)n, PMIX_INFO));
    pthread_mutex_lock(&lock);
    check("PMIx_Data_unload", PMIx_Data_unload(&buffer, &message));
    pthread_cond_signal(&arrived);
    pthread_mutex_unlock(&lock);
    if (done != NULL)
        done(PMIX_SUCCESS, with);
}

/* What comes behind the agent is the daemon's command. */
static pid_t start_daemon(const char *agent, const char *node, char **args)
{
    char *command[64] = {(char *)agent, (char *)node, "launcher", "--daemon", (char *)node};
    int ends[2], n = 5;
    while (n < 63 && (command[n] = *args++) != NULL)
        n++;
    fflush(NULL);
    pid_t pid = pipe(ends) == 0 ? fork() : -1;
    if (pid == 0) {
        dup2(ends[0], 0);
        close(ends[1]);
        if (agent != NULL)
            execvp(agent, command);
        else
            execv("/proc/self/exe", command + 2);
        _exit(127);
    }
    close(ends[0]);
    FILE *out = pid < 0 ? NULL : fdopen(ends[1], "w");
    if (out == NULL || fwrite(message.bytes, 1, message.size, out) != message.size || fclose(out) != 0)
        perror(node);
    return pid;
}

static int wait_for_all(void)
{
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}

static int start_job(const char *agent, char **args)
{
    pmix_info_t info[3];
    pmix_nspace_t job;
    char *nodes = strdup(node_list);
    snprintf(job, sizeof(job), "launcher.%d", (int)getpid());
    start_library("starter");
    load_maps(info);
    PMIX_INFO_LOAD(&info[2], PMIX_SETUP_APP_ALL, NULL, PMIX_BOOL);
    message.bytes = NULL;
    check("PMIx_server_setup_application", PMIx_server_setup_application(job, info, 3, on_setup, job));
    pthread_mutex_lock(&lock);
    while (message.bytes == NULL)
        pthread_cond_wait(&arrived, &lock);
    pthread_mutex_unlock(&lock);
    int failed = 0;
    for (char *node = strtok(nodes, ","); node != NULL; node = strtok(NULL, ","))
        failed |= start_daemon(agent, node, args) < 0;
    failed |= wait_for_all();
    end_library();
    return failed;
}

/* ---- a node's daemon -------------------------------------------------------------------------------- */

static size_t read_message(char **job, pmix_info_t **info)
{
    pmix_data_buffer_t buffer;
    int32_t one = 1, n;
    size_t count = 0, room = 0;
    PMIX_BYTE_OBJECT_CONSTRUCT(&message);
    do {
        message.bytes = realloc(message.bytes, room += 65536);
        message.size += fread(message.bytes + message.size, 1, room - message.size, stdin);
    } while (message.size == room);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    check("PMIx_Data_load", PMIx_Data_load(&buffer, &message));
    check("the message", PMIx_Data_unpack(NULL, &buffer, job, &one, PMIX_STRING));
    check("the message", PMIx_Data_unpack(NULL, &buffer, &count, &one, PMIX_SIZE));
    n = (int32_t)count;
    PMIX_INFO_CREATE(*info, count);
    if (n > 0)
        check("the message", PMIx_Data_unpack(NULL, &buffer, *info, &n, PMIX_INFO));
    return count;
}

struct program {
    const char *job;
    char **args;
};

static void start_rank(pmix_rank_t rank, void *with)
{
    const struct program *program = with;
    pmix_proc_t proc;
    char **env = NULL;
    pmix_status_t rc = PMIX_SUCCESS;
    for (size_t i = 0; rc == PMIX_SUCCESS && environ[i] != NULL; i++)
        PMIX_ARGV_APPEND(rc, env, environ[i]);
    check("the environment", rc);
    PMIX_LOAD_PROCID(&proc, program->job, rank);
    check("register_client", PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, NULL, NULL));
    check("setup_fork", PMIx_server_setup_fork(&proc, &env));
    if (fork() == 0) {
        execve(program->args[0], program->args, env);
        _exit(127);
    }
    PMIX_ARGV_FREE(env);
}

static int run_node(const char *node, char **args)
{
    struct program program = {.args = args};
    pmix_info_t info[3], *launch;
    uint32_t size = 0;
    int number = 0, here = -1;
    start_library(node);
    size_t n = read_message((char **)&program.job, &launch);
    char *nodes = strdup(node_list);
    for (char *one = strtok(nodes, ","); one != NULL; one = strtok(NULL, ","), number++) {
        here = strcmp(one, node) == 0 ? number : here;
        size += each_rank(number, NULL, NULL);
    }
    free(nodes);
    load_maps(info);
    PMIX_INFO_LOAD(&info[2], PMIX_JOB_SIZE, &size, PMIX_UINT32);
    check("register_nspace",
          PMIx_server_register_nspace(program.job, (int)each_rank(here, NULL, NULL), info, 3, NULL, NULL));
    check("setup_local_support", PMIx_server_setup_local_support(program.job, launch, n, NULL, NULL));
    each_rank(here, start_rank, &program);
    int failed = wait_for_all();
    PMIx_server_deregister_nspace(program.job, NULL, NULL);
    end_library();
    return failed;
}

int main(int argc, char **argv)
{
    const int skip = argc > 2 && (strcmp(argv[1], "-a") == 0 || strcmp(argv[1], "--daemon") == 0) ? 3 : 1;
    if (argc < skip + 3) {
        fprintf(stderr, "usage: launcher [-a AGENT] NODES RANKS PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    node_list = argv[skip];
    rank_list = argv[skip + 1];
    if (skip == 3 && argv[1][1] == '-')
        return run_node(argv[2], argv + skip + 2);
    return start_job(skip == 3 ? argv[2] : NULL, argv + skip);
}
