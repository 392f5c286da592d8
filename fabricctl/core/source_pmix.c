/*
 * source_pmix.c - fabricctl as a PMIx tool.
 */
#include "fabricctl/core/source.h"

#include <fcntl.h>
#include <pmix_tool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECT_SECONDS 30

static bool connected;

/* PMIx has no deadline of its own for a server that accepts and then says nothing. */
static void on_alarm(int signal_number)
{
    static const char text[] =
        "fabricctl: no answer: the PMIx server of --uri: is it a fabricd, and does it use the "
        "same security (munge)?\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);

    (void)signal_number;
    (void)ignored;
    _exit(CTL_FAILED);
}

/*
 * The library writes lines of its own to standard error about what is none of an operator's business (4.2.2
 * calls every query a BAD-PARAM). What fails is told by us. Who wants to see its lines sets the variable
 * to 2.
 */
static void silence_library(void)
{
    char text[16];
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    snprintf(text, sizeof text, "%d", fd);
    setenv("PMIX_OUTPUT_STDERR_FD", text, 0);
}

enum ctl_exit ctl_pmix_connect(const char *uri)
{
    struct sigaction action = {.sa_handler = on_alarm};
    pmix_info_t info[2];
    pmix_proc_t self;
    pmix_status_t rc;
    uint32_t retries = 1;

    if (connected)
        return CTL_DONE;
    silence_library();
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_URI, uri, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_CONNECT_MAX_RETRIES, &retries, PMIX_UINT32);
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    alarm(CONNECT_SECONDS);
    rc = PMIx_tool_init(&self, info, 2);
    alarm(0);
    PMIX_INFO_DESTRUCT(&info[0]);
    PMIX_INFO_DESTRUCT(&info[1]);
    if (rc != PMIX_SUCCESS)
        return ctl_error(
            "cannot connect: %s: %s; is fabricd running, and is this the line in its fabricd.uri?", uri,
            PMIx_Error_string(rc));
    connected = true;
    return CTL_DONE;
}

void ctl_pmix_disconnect(void)
{
    struct sigaction action = {.sa_handler = on_alarm};

    if (!connected)
        return;
    connected = false;
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    alarm(CONNECT_SECONDS);
    PMIx_tool_finalize();
    alarm(0);
}

int ctl_pmix_open(const char *plane, struct pmixfab **out)
{
    pmix_info_t directive;
    int rc;

    if (plane == NULL)
        return pmixfab_open_pmix(NULL, 0, out);
    PMIX_INFO_LOAD(&directive, PMIX_FABRIC_PLANE, plane, PMIX_STRING);
    rc = pmixfab_open_pmix(&directive, 1, out);
    PMIX_INFO_DESTRUCT(&directive);
    return rc;
}
