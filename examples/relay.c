/*
 * relay.c - a PMIx server that starts a program and forwards the program's fabric requests to fabricd:
 * libpmixfab does that, in the lines marked "fabric". The rest is needed in any server.
 *
 *   relay SCHEDULER PROGRAM [ARGUMENT...]
 *
 * SCHEDULER: fabricd's PMIx URI, or its run directory on this host. The exit status is the program's.
 * LD_PRELOAD=libpmix-guard.so lets the PMIx library also forward the directives of PMIx_Fabric_register.
 */
#include <pmix.h>
#include <pmix_server.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmixfab.h" /* fabric; after pmix_server.h */

extern char **environ;

static void check(const char *what, pmix_status_t status)
{
    if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED)
        return;
    fprintf(stderr, "relay: %s: %s (%d)\n", what, PMIx_Error_string(status), status);
    exit(1);
}

static pmix_server_module_t module = {.fabric = pmixfab_server_fabric}; /* fabric; most have others */

static void log_line(enum pmixfab_level level, const char *line, void *to) /* fabric */
{
    if (level <= PMIXFAB_LOG_WARNING)
        fprintf(to, "relay: %s\n", line);
}

static int run(char **args)
{
    pmix_proc_t client;
    char **env = NULL;
    int status = -1;
    PMIX_PROC_CONSTRUCT(&client);
    snprintf(client.nspace, sizeof(client.nspace), "relay.%d", (int)getpid()); /* no other server uses it */
    client.rank = 0;
    check("register_nspace", PMIx_server_register_nspace(client.nspace, 1, NULL, 0, NULL, NULL));
    check("register_client", PMIx_server_register_client(&client, geteuid(), getegid(), NULL, NULL, NULL));
    for (size_t i = 0; environ[i] != NULL; i++) {
        pmix_status_t rc;
        PMIX_ARGV_APPEND(rc, env, environ[i]);
        check("the environment", rc);
    }
    check("setup_fork", PMIx_server_setup_fork(&client, &env));
    const pid_t pid = fork();
    if (pid == 0) {
        execve(args[0], args, env);
        perror(args[0]);
        _exit(127);
    }
    PMIX_ARGV_FREE(env);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        perror("relay");
    PMIx_server_deregister_nspace(client.nspace, NULL, NULL);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: relay SCHEDULER PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    check("PMIx_server_init", PMIx_server_init(&module, NULL, 0));
    pmixfab_set_log(log_line, stderr);              /* fabric */
    const int failed = pmixfab_relay_open(argv[1]); /* fabric: also succeeds while fabricd is not there yet */
    if (failed != 0)
        fprintf(stderr, "relay: %s\n", pmixfab_strerror(failed));
    const int status = failed != 0 ? 1 : run(argv + 2);
    pmixfab_relay_close(); /* fabric */
    check("PMIx_server_finalize", PMIx_server_finalize());
    return status;
}
