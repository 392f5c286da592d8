/*
 * launcher.c - the starter of a job and the daemon of each of its nodes, with nothing but the PMIx library:
 * which calls a launcher makes, and in which order, so that processes know their fabric at their first line.
 *
 *   launcher [-a AGENT] [-e ENDPOINTS] NODES RANKS PROGRAM [ARGUMENT...]
 *
 *   launcher -a ssh -e 2 node1,node2 "0,1;2,3" ./instant_on
 *
 * The starter asks its library for the launch information, and starts `AGENT NODE launcher --daemon NODE` for
 * each node, which reads all that it needs from its standard input; without an agent, on this host. The
 * status is 0 if that of every process is. Each process gets so many endpoints on each of its devices. A
 * process that fails or aborts ends the job: a daemon ends its processes when its input ends, whatever became
 * of the starter.
 */
#include <fcntl.h>
#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char *node_list, *rank_list; /* "n1,n2" and "0,1;2,3" */
static char **program;              /* and its arguments */
static pmix_nspace_t job;
static char folder[4096];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static _Noreturn void fail(const char *what, pmix_status_t status)
{
    fprintf(stderr, "launcher: %s: %s\n", what, PMIx_Error_string(status));
    exit(1);
}

static void check(const char *what, pmix_status_t status)
{
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
        fail(what, status);
}

static void start_library(const char *node, pmix_server_abort_fn_t abort)
{
    static pmix_server_module_t module; /* a real one has functions for all that its processes ask */
    pmix_info_t info[2];
    module.abort = abort;
    /* daemons of one job on one host must not share it */
    snprintf(folder, sizeof(folder), "%s/launcher.XXXXXX",
             getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    if (mkdtemp(folder) == NULL)
        perror(folder);
    PMIX_INFO_LOAD(&info[0], PMIX_HOSTNAME, node, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SERVER_TMPDIR, folder, PMIX_STRING);
    check("PMIx_server_init", PMIx_server_init(&module, info, 2));
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
    free(nodes);
    free(ranks);
}

/* Calls back for each rank of a node; returns how many it has. */
static uint32_t each_rank(int node, void (*call)(pmix_rank_t rank))
{
    const char *at = rank_list;
    uint32_t n = 0;
    while (node-- > 0)
        at = strchr(at, ';') + 1;
    for (char *end;; at = end + 1, n++) {
        const pmix_rank_t rank = (pmix_rank_t)strtoul(at, &end, 10);
        if (call != NULL)
            call(rank);
        if (*end != ',')
            return n + 1;
    }
}

/* ---- the starter ------------------------------------------------------------------------------------ */

static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static pmix_byte_object_t message; /* for the daemons: the job and its launch information */

static void pack(pmix_data_buffer_t *buffer, const void *what, size_t n, pmix_data_type_t type)
{
    if (n > 0)
        check("PMIx_Data_pack", PMIx_Data_pack(NULL, buffer, (void *)what, (int32_t)n, type));
}

static void on_setup(pmix_status_t status, pmix_info_t info[], size_t n, void *unused, pmix_op_cbfunc_t done,
                     void *with)
{
    const char *texts[] = {job, node_list, rank_list};
    pmix_data_buffer_t buffer;
    size_t n_words = 0;
    (void)unused;
    check("PMIx_server_setup_application", status);
    while (program[n_words] != NULL)
        n_words++;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pack(&buffer, texts, 3, PMIX_STRING);
    pack(&buffer, &n_words, 1, PMIX_SIZE);
    pack(&buffer, program, n_words, PMIX_STRING);
    pack(&buffer, &n, 1, PMIX_SIZE);
    pack(&buffer, info, n, PMIX_INFO);
    pthread_mutex_lock(&lock);
    check("PMIx_Data_unload", PMIx_Data_unload(&buffer, &message));
    pthread_cond_signal(&arrived);
    pthread_mutex_unlock(&lock);
    if (done != NULL)
        done(PMIX_SUCCESS, with);
}

/* The other end of its standard input, which no other daemon has; -1: it could not be started. */
static int start_daemon(char *agent, char *node)
{
    char *command[] = {agent, node, "launcher", "--daemon", node, NULL};
    int ends[2];
    fflush(NULL);
    const pid_t pid = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (pid == 0) {
        dup2(ends[0], 0);
        signal(SIGPIPE, SIG_DFL);
        if (agent != NULL)
            execvp(agent, command);
        else
            execv("/proc/self/exe", command + 2);
        _exit(127);
    }
    if (pid < 0) {
        perror(node);
        return -1;
    }
    close(ends[0]);
    if (dprintf(ends[1], "%zu\n", message.size) < 0 ||
        write(ends[1], message.bytes, message.size) != (ssize_t)message.size)
        perror(node); /* it fails, then */
    return ends[1];
}

/* Returns when on_setup() has packed the message. */
static void set_up(size_t endpoints)
{
    pmix_info_t info[4], network;
    pmix_data_array_t wanted = {.type = PMIX_INFO, .size = 1, .array = &network};
    load_maps(info);
    PMIX_INFO_LOAD(&info[2], PMIX_SETUP_APP_ALL, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&network, PMIX_ALLOC_FABRIC_ENDPTS, &endpoints, PMIX_SIZE);
    PMIX_INFO_REQUIRED(&network); /* rather no job than one without them */
    PMIX_INFO_LOAD(&info[3], PMIX_ALLOC_FABRIC, &wanted, PMIX_DATA_ARRAY);
    check("PMIx_server_setup_application",
          PMIx_server_setup_application(job, info, endpoints > 0 ? 4 : 3, on_setup, NULL));
    pthread_mutex_lock(&lock);
    while (message.bytes == NULL)
        pthread_cond_wait(&arrived, &lock);
    pthread_mutex_unlock(&lock);
}

static int start_job(char *agent, size_t endpoints)
{
    int *daemons = calloc(strlen(node_list) + 1, sizeof(*daemons)), n = 0, failed = 0, status;
    snprintf(job, sizeof(job), "launcher.%d", (int)getpid());
    signal(SIGPIPE, SIG_IGN); /* a daemon that is gone is seen by its status */
    start_library("starter", NULL);
    set_up(endpoints);
    for (char *node = strtok(node_list, ","); node != NULL && !failed; node = strtok(NULL, ","), n++)
        failed = (daemons[n] = start_daemon(agent, node)) < 0;
    for (int left = n; left > 0; failed |= status != 0) {
        for (; failed && n > 0; n--) /* the others end with their input */
            close(daemons[n - 1]);
        left = wait(&status) > 0 ? left - 1 : 0;
    }
    free(daemons);
    PMIx_server_deregister_nspace(job, NULL, NULL); /* gives its endpoints back */
    end_library();
    return failed;
}

/* ---- a node's daemon -------------------------------------------------------------------------------- */

static const char *here;
static struct process {
    pid_t pid; /* that of the first is their group's */
    pmix_rank_t rank;
} * processes;
static size_t n_processes;
static int ended;

static void end_job(const char *why, ...)
{
    char text[256];
    va_list words;
    va_start(words, why);
    vsnprintf(text, sizeof(text), why, words);
    va_end(words);
    pthread_mutex_lock(&lock);
    if (!ended)
        fprintf(stderr, "launcher: %s: %s\n", here, text); /* in one piece: processes write there, too */
    if (n_processes > 0)
        kill(-processes[0].pid, SIGKILL);
    ended = 1;
    pthread_mutex_unlock(&lock);
}

static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status, const char text[],
                              pmix_proc_t procs[], size_t n, pmix_op_cbfunc_t done, void *with)
{
    (void)object, (void)procs, (void)n, (void)done, (void)with;
    end_job("rank %u aborts with %d: %s", proc->rank, status, text == NULL ? "" : text);
    return PMIX_OPERATION_SUCCEEDED;
}

static void *wait_for_end_of_input(void *unused)
{
    char more;
    while (read(0, &more, 1) > 0)
        ;
    end_job("the job is ended");
    return unused;
}

static void unpack(pmix_data_buffer_t *buffer, void *what, size_t n, pmix_data_type_t type)
{
    int32_t count = (int32_t)n;
    if (n > 0)
        check("the message", PMIx_Data_unpack(NULL, buffer, what, &count, type));
}

static size_t read_message(pmix_info_t **info)
{
    pmix_data_buffer_t buffer;
    char *texts[3] = {NULL};
    size_t n = 0;
    if (scanf("%zu%*c", &message.size) != 1 || (message.bytes = malloc(message.size)) == NULL ||
        fread(message.bytes, 1, message.size, stdin) != message.size)
        fail("the message", PMIX_ERR_UNPACK_FAILURE);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    check("PMIx_Data_load", PMIx_Data_load(&buffer, &message));
    unpack(&buffer, texts, 3, PMIX_STRING);
    PMIX_LOAD_NSPACE(job, texts[0]);
    free(texts[0]);
    node_list = texts[1];
    rank_list = texts[2];
    unpack(&buffer, &n, 1, PMIX_SIZE);
    program = calloc(n + 1, sizeof(*program));
    unpack(&buffer, program, n, PMIX_STRING);
    unpack(&buffer, &n, 1, PMIX_SIZE);
    PMIX_INFO_CREATE(*info, n);
    unpack(&buffer, *info, n, PMIX_INFO);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return n;
}

static void start_rank(pmix_rank_t rank)
{
    pmix_proc_t proc;
    char **env = NULL;
    pmix_status_t rc = PMIX_SUCCESS;
    for (size_t i = 0; rc == PMIX_SUCCESS && environ[i] != NULL; i++)
        PMIX_ARGV_APPEND(rc, env, environ[i]);
    check("the environment", rc);
    PMIX_LOAD_PROCID(&proc, job, rank);
    check("register_client", PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, NULL, NULL));
    check("setup_fork", PMIx_server_setup_fork(&proc, &env));
    pthread_mutex_lock(&lock);
    const pid_t group = n_processes > 0 ? processes[0].pid : 0, pid = ended ? -1 : fork();
    if (pid == 0) {
        setpgid(0, group);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the daemon be killed */
        dup2(open("/dev/null", O_RDONLY), 0);
        execve(program[0], program, env);
        perror(program[0]);
        _exit(127);
    }
    if (pid > 0) {
        setpgid(pid, group);
        processes[n_processes++] = (struct process){pid, rank};
    }
    pthread_mutex_unlock(&lock);
    if (pid < 0)
        end_job("rank %u cannot be started", rank);
    PMIX_ARGV_FREE(env);
}

static void wait_for_processes(void)
{
    int status;
    for (pid_t pid; (pid = wait(&status)) > 0;) {
        size_t i = 0;
        while (processes[i].pid != pid)
            i++;
        if (WIFSIGNALED(status))
            end_job("rank %u ends by signal %d", processes[i].rank, WTERMSIG(status));
        else if (WEXITSTATUS(status) != 0)
            end_job("rank %u ends with status %d", processes[i].rank, WEXITSTATUS(status));
    }
    pthread_mutex_lock(&lock);
    n_processes = 0;
    pthread_mutex_unlock(&lock);
}

static void kill_processes(void)
{
    if (n_processes > 0)
        kill(-processes[0].pid, SIGKILL);
}

static int run_node(const char *node)
{
    pmix_info_t info[3], *launch;
    pthread_t thread;
    uint32_t size = 0;
    int number = 0, mine = -1;
    here = node;
    start_library(node, on_abort);
    const size_t n = read_message(&launch);
    load_maps(info);
    for (char *one = strtok(node_list, ","); one != NULL; one = strtok(NULL, ","), number++) {
        mine = strcmp(one, node) == 0 ? number : mine;
        size += each_rank(number, NULL);
    }
    if (mine < 0 || program[0] == NULL)
        fail(node, PMIX_ERR_NOT_FOUND);
    PMIX_INFO_LOAD(&info[2], PMIX_JOB_SIZE, &size, PMIX_UINT32);
    check("register_nspace",
          PMIx_server_register_nspace(job, (int)each_rank(mine, NULL), info, 3, NULL, NULL));
    check("setup_local_support", PMIx_server_setup_local_support(job, launch, n, NULL, NULL));
    PMIX_INFO_FREE(launch, n);
    processes = calloc(each_rank(mine, NULL), sizeof(*processes));
    if (processes == NULL || pthread_create(&thread, NULL, wait_for_end_of_input, NULL) != 0)
        fail(node, PMIX_ERR_OUT_OF_RESOURCE);
    atexit(kill_processes); /* when a check fails */
    each_rank(mine, start_rank);
    wait_for_processes();
    PMIx_server_deregister_nspace(job, NULL, NULL);
    end_library();
    return ended;
}

static int count(const char *text, char what)
{
    int n = 0;
    for (; *text != '\0'; text++)
        n += *text == what;
    return n;
}

int main(int argc, char **argv)
{
    char *agent = NULL;
    size_t endpoints = 0;
    int usage = 0;
    if (argc == 3 && strcmp(argv[1], "--daemon") == 0)
        return run_node(argv[2]);
    for (int option; (option = getopt(argc, argv, "+a:e:")) != -1;) {
        if (option == 'a')
            agent = optarg;
        else if (option == 'e')
            endpoints = strtoul(optarg, NULL, 10);
        else
            usage = 1;
    }
    if (usage || argc < optind + 3 || count(argv[optind], ',') != count(argv[optind + 1], ';')) {
        fprintf(stderr, "usage: launcher [-a AGENT] [-e ENDPOINTS] NODES RANKS PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    node_list = argv[optind];
    rank_list = argv[optind + 1];
    program = argv + optind + 2;
    return start_job(agent, endpoints);
}
