#include "mca/pnet/inventory_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "topo/base/library_log.h"
#include "topo/base/milliseconds.h"
#include "topo/model/delivery.h"

#define LOOK           "--inventory-child" /* fabricd/sources/host_scan_inventory.c */
#define DELIVER        "--deliver-child"   /* fabricd/node/deliver_child.c */
#define NOTHING        3                   /* exit status if the host has no devices */
#define STATUS_UNKNOWN (-1)                /* another thread has waited for it */
#define MAX_PROBES     32
#define DEATH_MS       1000 /* wait for the end of a killed child */
#define SEND_SECONDS   2    /* the delivering child reads all the time, so this is long */
#define END_MS         2000 /* it ends on its own in less, unless it was only just started */

extern char **environ;

/* ---- a child ------------------------------------------------------------------------------------ */

static pid_t left; /* killed and not ended yet; the next call waits for it */

static int child_actions(posix_spawn_file_actions_t *actions, int fd, int as, bool talks)
{
    /* The descriptor first: if the host has closed its own, it may have one of the numbers below. */
    int rc = posix_spawn_file_actions_adddup2(actions, fd, as);
    if (rc == 0 && as != STDIN_FILENO)
        rc = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (rc == 0 && !talks)
        rc = posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_addclosefrom_np(actions, as == STDIN_FILENO ? 3 : as + 1);
    return rc;
}

/*
 * Start a child in a process group of its own. Its only open descriptors are `fd`, which gets the number `as`
 * (0 or 3) in the child, and standard error if params->talks is set.
 */
static int spawn_fabricd(const struct pnet_inventory_params *params, char *const *argv, int fd, int as,
                         pid_t *pid, struct fab_err *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all); /* the host may ignore some, SIGCHLD among them */
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions);
    int rc = child_actions(&actions, fd, as, params->talks);
    if (rc == 0)
        rc = posix_spawn(pid, params->program, &actions, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    if (rc != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be started: %s", params->program, strerror(rc));
    return PMIXFAB_OK;
}

/* Wait up to that time; return whether the child has ended. */
static bool wait_ended(pid_t pid, int64_t milliseconds, int *status)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    const int64_t end = fab_now_ms() + milliseconds;
    for (;;) {
        pid_t ended = waitpid(pid, status, WNOHANG);
        if (ended == pid)
            return true;
        if (ended < 0 && errno == ECHILD) { /* another waiting call got it, or SIGCHLD is ignored */
            *status = STATUS_UNKNOWN;
            return true;
        }
        if (fab_now_ms() >= end)
            return false;
        nanosleep(&moment, NULL);
    }
}

static void kill_group(pid_t pid)
{
    int status;
    kill(-pid, SIGKILL);
    if (!wait_ended(pid, DEATH_MS, &status))
        left = pid;
}

static void reap_left(void)
{
    if (left != 0 && waitpid(left, NULL, WNOHANG) != 0)
        left = 0;
}

/* ---- the child that scans ----------------------------------------------------------------------- */

/* Make the child's output file: with a file no thread has to read while it works. Its size is fixed. */
static int new_file(struct fab_err *err)
{
    int fd = memfd_create("fabricd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, FAB_DELIVERY_MAX + 1) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) == 0)
        return fd;
    fab_fail(err, PMIXFAB_ERR_IO, "inventory: cannot create a file: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static int explain_status(int status, struct fab_err *err)
{
    if (status == 0 || status == STATUS_UNKNOWN)
        return PMIXFAB_OK;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOTHING)
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "inventory: fabricd found nothing");
    return fab_fail(err, PMIXFAB_ERR_IO, "inventory: fabricd failed, status 0x%x", (unsigned)status);
}

/*
 * Read the output: the file offset is shared with the child. Check it here, so that receivers get no damaged
 * bytes.
 */
static int take_inventory_bytes(int fd, const char *host, void **bytes, size_t *size, struct fab_err *err)
{
    struct fab_delivery delivery;
    off_t n = lseek(fd, 0, SEEK_CUR);
    if (n <= 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "inventory: fabricd ended without output");
    void *copy = malloc((size_t)n);
    if (copy == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "inventory: out of memory");
    int rc = pread(fd, copy, (size_t)n, 0) == n
                 ? fab_delivery_decode(copy, (size_t)n, &delivery, err)
                 : fab_fail(err, PMIXFAB_ERR_IO, "inventory: %s", strerror(errno));
    if (rc == PMIXFAB_OK && strcmp(delivery.host, host) != 0)
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT, "inventory: it is of %s, but %s was requested", delivery.host,
                      host);
    if (rc != PMIXFAB_OK) {
        free(copy);
        return rc;
    }
    *bytes = copy;
    *size = (size_t)n;
    return PMIXFAB_OK;
}

/* Add the list after the fixed arguments; `text` is cut up. */
static int add_probes(char **argv, size_t n, char *text, struct fab_err *err)
{
    const size_t end = n + MAX_PROBES;
    char *rest = NULL;
    for (char *one = strtok_r(text, ",", &rest); one != NULL; one = strtok_r(NULL, ",", &rest)) {
        if (n == end)
            return fab_fail(err, PMIXFAB_ERR_INVAL, "inventory: more than %d probes", MAX_PROBES);
        argv[n++] = one;
    }
    return PMIXFAB_OK;
}

static int run_child(const struct pnet_inventory_params *params, char *const *argv, int fd,
                     struct fab_err *err)
{
    pid_t pid = 0;
    int status;
    int rc = spawn_fabricd(params, argv, fd, 3, &pid, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (wait_ended(pid, (int64_t)params->seconds * 1000, &status))
        return explain_status(status, err);
    kill_group(pid); /* its probes have groups of their own, and end with it */
    return fab_fail(err, PMIXFAB_ERR_TIMEOUT, "inventory: fabricd was killed: not finished after %d s",
                    params->seconds);
}

int pnet_inspect(const struct pnet_inventory_params *params, void **bytes, size_t *size, struct fab_err *err)
{
    char pid[16], seconds[16],
        *argv[5 + MAX_PROBES + 1] = {"fabricd", LOOK, pid, (char *)params->host, seconds};
    *bytes = NULL;
    *size = 0;
    reap_left();
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    /* A hanging probe is ended by its own deadline, a second before the total one. */
    snprintf(seconds, sizeof(seconds), "%d", params->seconds > 1 ? params->seconds - 1 : 1);
    char *probes = strdup(params->probes != NULL ? params->probes : "");
    if (probes == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "inventory: out of memory");
    int fd = -1, rc = add_probes(argv, 5, probes, err);
    if (rc == PMIXFAB_OK && (fd = new_file(err)) < 0)
        rc = PMIXFAB_ERR_IO;
    if (rc == PMIXFAB_OK)
        rc = run_child(params, argv, fd, err);
    if (rc == PMIXFAB_OK)
        rc = take_inventory_bytes(fd, params->host, bytes, size, err);
    if (fd >= 0)
        close(fd);
    free(probes);
    return rc;
}

/* ---- the child that delivers ----------------------------------------------------------------------- */

static int start_sender(struct pnet_sender *s, struct fab_err *err)
{
    char *argv[] = {"fabricd", DELIVER, (char *)s->params->rundir, NULL};
    const struct timeval limit = {.tv_sec = SEND_SECONDS};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "cannot create a socket: %s", strerror(errno));
    setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    int rc = spawn_fabricd(s->params, argv, ends[1], STDIN_FILENO, &s->pid, err);
    close(ends[1]);
    if (rc == PMIXFAB_OK)
        s->fd = ends[0];
    else
        close(ends[0]);
    return rc;
}

static void end_sender(struct pnet_sender *s, int64_t milliseconds)
{
    int status;
    shutdown(s->fd,
             SHUT_RDWR); /* it sees that, even while a process forked by the host has the socket open */
    close(s->fd);
    s->fd = -1;
    if (!wait_ended(s->pid, milliseconds, &status))
        kill_group(s->pid);
}

static bool send_all(const struct pnet_sender *s, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t n = send(s->fd, at, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

int pnet_send(struct pnet_sender *s, const void *bytes, size_t size, struct fab_err *err)
{
    const uint32_t length = (uint32_t)size;
    if (size > FAB_DELIVERY_MAX)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "%zu bytes: too large for an inventory", size);
    reap_left();
    for (int attempt = 0; attempt < 2; attempt++) {
        int rc = s->fd >= 0 ? PMIXFAB_OK : start_sender(s, err);
        if (rc != PMIXFAB_OK)
            return rc;
        if (send_all(s, &length, sizeof(length)) && send_all(s, bytes, size))
            return PMIXFAB_OK;
        fab_log(
            PMIXFAB_LOG_WARNING,
            "inventories: the delivering child has stopped reading (%s): undelivered inventories are lost",
            strerror(errno));
        end_sender(s, 0);
    }
    return fab_fail(err, PMIXFAB_ERR_IO, "%s: the delivering child reads nothing", s->params->program);
}

void pnet_send_stop(struct pnet_sender *s)
{
    if (s->fd >= 0)
        end_sender(s, END_MS);
    reap_left();
}
