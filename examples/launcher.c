/*
 * launcher.c - the starter of a job and the daemon of each of its nodes, with nothing but the PMIx library:
 * which calls a launcher makes, and in which order, so that processes know their fabric at their first line.
 *
 *   launcher [-a AGENT] [-e ENDPOINTS] NODE[,NODE...] PER_NODE PROGRAM [ARGUMENT...]
 *
 *   launcher -a ssh -e 2 node1,node2 8 ./instant_on
 *
 * The starter asks its library for the launch information, starts `AGENT NODE launcher -d JOB,NUMBER ...` for
 * each node, without an agent on this host, and writes the information to its standard input. (ssh gives
 * arguments to a shell.) With -e each process has so many endpoints on each of its devices. The status is 0
 * if that of every process is. One that fails or aborts ends the job: a daemon ends its processes when its
 * input ends, whoever closed it.
 */
#include <fcntl.h>
#include <pmix.h>
#include <pmix_server.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static pmix_nspace_t job;
static char *node_list, **nodes,
    folder[] = "/tmp/launcher.XXXXXX"; /* daemons of one host must not share it */
static uint32_t n_nodes, per_node;

static void check(const char *what, pmix_status_t status)
{
    if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED)
        return;
    fprintf(stderr, "launcher: %s: %s\n", what, PMIx_Error_string(status));
    exit(1);
}

static char **append(char **list, char **more)
{
    pmix_status_t rc = PMIX_SUCCESS;
    for (; *more != NULL && rc == PMIX_SUCCESS; more++)
        PMIX_ARGV_APPEND(rc, list, *more);
    check("append", rc);
    return list;
}

static void start_library(const char *node, pmix_server_abort_fn_t abort)
{
    static pmix_server_module_t module; /* a real one has functions for all that its processes ask */
    pmix_info_t info[2];
    module.abort = abort;
    if (mkdtemp(folder) == NULL)
        perror(folder);
    PMIX_INFO_LOAD(&info[0], PMIX_HOSTNAME, node, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SERVER_TMPDIR, folder, PMIX_STRING);
    check("PMIx_server_init", PMIx_server_init(&module, info, 2));
}

static int end_library(int failed)
{
    PMIx_server_deregister_nspace(job, NULL, NULL); /* the starter's gives the endpoints back */
    PMIx_server_finalize();
    rmdir(folder);
    return failed;
}

/* Which nodes the job has, and which ranks each of them: "0,1;2,3". */
static void load_maps(pmix_info_t info[2])
{
    char *ranks = calloc(n_nodes * per_node + 1, sizeof("4294967295,")), *at = ranks, *map;
    for (uint32_t i = 0; i < n_nodes * per_node; i++)
        at += sprintf(at, "%s%u", i == 0 ? "" : i % per_node == 0 ? ";" : ",", i);
    check("PMIx_generate_regex", PMIx_generate_regex(node_list, &map));
    PMIX_INFO_LOAD(&info[0], PMIX_NODE_MAP, map, PMIX_REGEX);
    free(map);
    check("PMIx_generate_ppn", PMIx_generate_ppn(ranks, &map));
    PMIX_INFO_LOAD(&info[1], PMIX_PROC_MAP, map, PMIX_REGEX);
    free(map);
    free(ranks);
}

/* ---- the starter ------------------------------------------------------------------------------------ */

static sem_t is_set_up;
static pmix_byte_object_t message; /* for the daemons: the launch information */

static void on_setup(pmix_status_t status, pmix_info_t info[], size_t n, void *unused, pmix_op_cbfunc_t done,
                     void *with)
{
    pmix_data_buffer_t buffer;
    (void)unused;
    check("PMIx_server_setup_application", status);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    check("PMIx_Data_pack", PMIx_Data_pack(NULL, &buffer, &n, 1, PMIX_SIZE));
    if (n > 0)
        check("PMIx_Data_pack", PMIx_Data_pack(NULL, &buffer, info, (int32_t)n, PMIX_INFO));
    check("PMIx_Data_unload", PMIx_Data_unload(&buffer, &message));
    sem_post(&is_set_up);
    if (done != NULL)
        done(PMIX_SUCCESS, with);
}

static void set_up(size_t endpoints)
{
    pmix_info_t info[4], network;
    pmix_data_array_t wanted = {.type = PMIX_INFO, .size = 1, .array = &network};
    load_maps(info);
    PMIX_INFO_LOAD(&info[2], PMIX_SETUP_APP_ALL, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&network, PMIX_ALLOC_FABRIC_ENDPTS, &endpoints, PMIX_SIZE);
    PMIX_INFO_REQUIRED(&network); /* rather no job than one without them */
    PMIX_INFO_LOAD(&info[3], PMIX_ALLOC_FABRIC, &wanted, PMIX_DATA_ARRAY);
    sem_init(&is_set_up, 0, 0);
    check("PMIx_server_setup_application",
          PMIx_server_setup_application(job, info, endpoints > 0 ? 4 : 3, on_setup, NULL));
    sem_wait(&is_set_up);
}

/* The other end of its standard input, which no other daemon has; -1: it could not be started. */
static int start_daemon(char *agent, uint32_t number, char **rest)
{
    char which[sizeof(job) + 16], *start[] = {agent, nodes[number], "launcher", "-d", which, NULL};
    int ends[2];
    snprintf(which, sizeof(which), "%s,%u", job, number);
    const pid_t pid = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (pid == 0) {
        dup2(ends[0], 0);
        signal(SIGPIPE, SIG_DFL);
        execvp(agent == NULL ? "/proc/self/exe" : agent,
               append(append(NULL, start + (agent == NULL ? 2 : 0)), rest));
        _exit(127);
    }
    if (pid > 0) {
        close(ends[0]);
        if (dprintf(ends[1], "%zu\n", message.size) > 0 &&
            write(ends[1], message.bytes, message.size) == (ssize_t)message.size)
            return ends[1];
    }
    perror(nodes[number]);
    return -1;
}

/* `rest` are its arguments from NODE on. */
static int start_job(char *agent, size_t endpoints, char **rest)
{
    int *daemons = calloc(n_nodes, sizeof(*daemons)), failed = 0, status;
    uint32_t n = 0;
    snprintf(job, sizeof(job), "launcher.%d", (int)getpid());
    signal(SIGPIPE, SIG_IGN); /* a daemon that is gone is seen by its status */
    start_library("starter", NULL);
    set_up(endpoints);
    for (; n < n_nodes && !failed; n++)
        failed = (daemons[n] = start_daemon(agent, n, rest)) < 0;
    while (wait(&status) > 0)
        for (failed |= status != 0; failed && n > 0; n--) /* the others end with their input */
            close(daemons[n - 1]);
    free(daemons);
    return end_library(failed);
}

/* ---- a node's daemon -------------------------------------------------------------------------------- */

static const char *here;

static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status, const char text[],
                              pmix_proc_t procs[], size_t n, pmix_op_cbfunc_t done, void *with)
{
    (void)object, (void)procs, (void)n, (void)done, (void)with;
    fprintf(stderr, "launcher: %s: rank %u aborts with %d: %s\n", here, proc->rank, status, text ? text : "");
    kill(getpid(), SIGTERM);
    return PMIX_OPERATION_SUCCEEDED;
}

static size_t read_launch_information(pmix_info_t **info)
{
    pmix_data_buffer_t buffer;
    int32_t one = 1, count;
    size_t n = 0;
    if (scanf("%zu%*c", &message.size) != 1 || (message.bytes = malloc(message.size)) == NULL ||
        fread(message.bytes, 1, message.size, stdin) != message.size)
        check("standard input", PMIX_ERR_UNPACK_FAILURE);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    check("PMIx_Data_load", PMIx_Data_load(&buffer, &message));
    check("PMIx_Data_unpack", PMIx_Data_unpack(NULL, &buffer, &n, &one, PMIX_SIZE));
    PMIX_INFO_CREATE(*info, n);
    count = (int32_t)n;
    if (n > 0)
        check("PMIx_Data_unpack", PMIx_Data_unpack(NULL, &buffer, *info, &count, PMIX_INFO));
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return n;
}

static pid_t start_rank(pmix_rank_t rank, pid_t group, char **program)
{
    char **env = append(NULL, environ);
    sigset_t none;
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, job, rank);
    check("register_client", PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, NULL, NULL));
    check("setup_fork", PMIx_server_setup_fork(&proc, &env));
    const pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, group);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the daemon be killed */
        dup2(open("/dev/null", O_RDONLY), 0);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(program[0], program, env);
        perror(program[0]);
        _exit(127);
    }
    if (pid < 0)
        check("fork", PMIX_ERR_OUT_OF_RESOURCE);
    setpgid(pid, group);
    PMIX_ARGV_FREE(env);
    return pid;
}

/* Until all have ended well, one has not, or the job is ended: then not 0. */
static int follow(const pid_t *pids, pmix_rank_t first, int signals)
{
    struct signalfd_siginfo signal;
    struct pollfd from[] = {{signals, POLLIN, 0}, {0, POLLIN, 0}};
    for (uint32_t left = per_node, i; left > 0 && poll(from, 2, -1) > 0;) {
        int status;
        if (from[0].revents == 0)
            return fprintf(stderr, "launcher: %s: the job is ended\n", here);
        if (read(signals, &signal, sizeof(signal)) < 0 || signal.ssi_signo == SIGTERM)
            return 1;
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0; left--) {
            for (i = 0; pids[i] != pid;)
                i++;
            if (status != 0)
                return fprintf(stderr, "launcher: %s: rank %u ends %s %d\n", here, first + i,
                               WIFSIGNALED(status) ? "by signal" : "with status",
                               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        }
    }
    return 0;
}

static int run_node(uint32_t number, char **program)
{
    const uint32_t size = n_nodes * per_node, first = number * per_node;
    pid_t *pids = calloc(per_node, sizeof(*pids));
    pmix_info_t info[3], *launch;
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* also in the library's threads */
    here = nodes[number];
    start_library(here, on_abort);
    const size_t n = read_launch_information(&launch);
    load_maps(info);
    PMIX_INFO_LOAD(&info[2], PMIX_JOB_SIZE, &size, PMIX_UINT32);
    check("register_nspace", PMIx_server_register_nspace(job, (int)per_node, info, 3, NULL, NULL));
    check("setup_local_support", PMIx_server_setup_local_support(job, launch, n, NULL, NULL));
    PMIX_INFO_FREE(launch, n);
    for (uint32_t i = 0; i < per_node; i++)
        pids[i] = start_rank(first + i, pids[0], program);
    const int failed = follow(pids, first, signalfd(-1, &ends, SFD_CLOEXEC)) != 0;
    if (failed)
        kill(-pids[0], SIGKILL); /* and what they started */
    free(pids);
    return end_library(failed);
}

int main(int argc, char **argv)
{
    char *agent = NULL, *number = NULL;
    size_t endpoints = 0;
    for (int option; (option = getopt(argc, argv, "+a:e:d:")) != -1;) {
        if (option == 'a')
            agent = optarg;
        else if (option == 'e')
            endpoints = strtoul(optarg, NULL, 10);
        else if (option == 'd' && (number = strchr(optarg, ',')) != NULL)
            PMIX_LOAD_NSPACE(job, strtok(optarg, ","));
        else
            argc = 0;
    }
    if (argc >= optind + 3) {
        node_list = argv[optind];
        char *copy = strdup(node_list);
        for (char *name = strtok(copy, ","); name != NULL; name = strtok(NULL, ","), n_nodes++)
            nodes = append(nodes, (char *[]){name, NULL});
        free(copy);
        per_node = (uint32_t)strtoul(argv[optind + 1], NULL, 10);
    }
    if (n_nodes == 0 || per_node == 0) {
        fprintf(stderr,
                "usage: launcher [-a AGENT] [-e ENDPOINTS] NODE[,NODE...] PER_NODE PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    if (number != NULL)
        return run_node((uint32_t)strtoul(number + 1, NULL, 10), argv + optind + 2);
    return start_job(agent, endpoints, argv + optind);
}
