#include "fabricd/pmix/pmix_server.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/watch.h"
#include "fabricd/pmix/pmix_link.h"
#include "fabricd/process/child.h"
#include "fabricd/process/process.h"
#include "fabricd/process/supervisor.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define START_MS 60000 /* with a sanitizer the library takes seconds to start */
#else
#define START_MS 10000 /* timeout of the start */
#endif
#define PULSE_MS    500   /* between checks */
#define SILENCE     4     /* checks without a line after which the server counts as hanging */
#define GOOD_MS     10000 /* a server that lived so long resets the pauses */
#define AT_ONCE     3     /* early losses that are replaced at once */
#define FIRST_PAUSE 50    /* milliseconds before the next one; then twice as long each time */
#define MAX_PAUSE   30000
#define WAIT_LOOK   20 /* between checks of a unit's status while a caller waits for a generation */
#define EXIT_CONFIG 2  /* of a child that can never serve */

struct pmix_server {
    struct event_base *base;
    const struct config *config;
    bool wanted;                                     /* until the stop */
    struct pmix_state state;                         /* as reported by the server; pid 0: none serves */
    char uri[sizeof(((struct pmix_state *)0)->uri)]; /* the last one; "": none yet */
    bool no_settings;                                /* the settings could not be written yet */
    bool no_uri;                                     /* it could not be written */
    struct pmix_server_status status;                /* without the fields that `state` and `life` have */
    gid_t gid;
    char folder[PATH_MAX]; /* for the server's own files */

    struct child *child; /* NULL: the server is a unit, or there is none */
    int channel;         /* to the child; -1: none */
    struct watch *keeps; /* receives the child's listening socket */
    int socket;          /* the listening socket; -1: none yet */
    bool never;          /* the child has reported that it can never serve */
    struct supervisor life;
    struct timer *again, *pulse;
    unsigned silent; /* checks since the last line; not a time, since fabricd itself may have been stopped */

    uint64_t generation; /* the generation that a caller waits for */
    int64_t until;
    struct timer *wait;
    void (*next)(void *cbdata); /* NULL: no caller waits */
    void *next_cbdata;

    void (*replaced)(void *cbdata);
    void *replaced_cbdata;
};

static int64_t server_now(void)
{
    return clock_now(CLOCK_MONOTONIC) / 1000;
}

/* ---- waiting for a generation ------------------------------------------------------------------------ */

static void server_go_on(struct pmix_server *server)
{
    void (*next)(void *cbdata) = server->next;
    server->next = NULL;
    timer_cancel(server->wait);
    if (next != NULL)
        next(server->next_cbdata);
}

static bool server_has(const struct pmix_server *server)
{
    return server->state.pid == 0 || server->state.generation >= server->generation;
}

static void server_look_at_unit(struct pmix_server *server);

static void server_on_wait(void *arg)
{
    struct pmix_server *server = arg;
    if (!server->config->pmix_start)
        server_look_at_unit(server);
    if (server->next == NULL)
        return;
    if (server_has(server) || server_now() >= server->until)
        server_go_on(server);
    else
        timer_after(server->wait, !server->config->pmix_start ? WAIT_LOOK : server->until - server_now());
}

void pmix_server_wait(struct pmix_server *server, uint64_t generation, void (*next)(void *cbdata),
                      void *cbdata)
{
    server->generation = generation;
    if (!server->wanted || server_has(server)) {
        next(cbdata);
        return;
    }
    server->next = next;
    server->next_cbdata = cbdata;
    server->until = server_now() + PMIX_WAIT_MS;
    timer_after(server->wait, !server->config->pmix_start ? WAIT_LOOK : PMIX_WAIT_MS);
}

/* ---- its address -------------------------------------------------------------------------------------- */

/* Return whether the text is a URI of a PMIx server at a numeric address, on loopback unless other hosts may
 * connect. Tools will connect to it. */
static bool uri_is_good(const char *uri, bool remote)
{
    const char *way = strchr(uri, ';'), *colon = strrchr(uri, ':');
    for (const char *p = uri; *p != '\0'; p++)
        if (*p <= ' ' || *p > '~')
            return false;
    if (way == NULL || (strncmp(way, ";tcp4://", 8) != 0 && strncmp(way, ";tcp6://", 8) != 0) ||
        colon < way + 8 || !isdigit((unsigned char)colon[1]))
        return false;
    const char *address = way + 8;
    const bool loopback = strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]", 5) == 0;
    char *end;
    const unsigned long port = strtoul(colon + 1, &end, 10);
    return (remote || loopback) && strspn(address, "0123456789abcdef.:[]") == strlen(address) &&
           *end == '\0' && port > 0 && port <= UINT16_MAX;
}

static void server_write_uri(struct pmix_server *server)
{
    struct fab_err err = {""};
    const bool failed = process_write_uri(server->config, server->uri, &err) != PMIXFAB_OK;
    if (failed && !server->no_uri)
        log_error("%s: PMIx tools cannot find fabricd; fabricd tries again", err.text);
    server->no_uri = failed;
}

/* ---- the server's status ------------------------------------------------------------------------------ */

static void server_begins(struct pmix_server *server, const struct pmix_state *state)
{
    if (server->uri[0] != '\0' && strcmp(server->uri, state->uri) != 0)
        log_warning("pmix: serving at %s, no longer at %s", state->uri, server->uri);
    memcpy(server->uri, state->uri, sizeof(server->uri));
    server_write_uri(server);
    server->status.served++;
    if (server->life.replaced > 0 && server->child != NULL)
        log_info("pmix: process %d serves at %s after %lld ms", (int)state->pid, state->uri,
                 (long long)(server_now() - server->life.began));
}

/* Process a status. False: it is not a status of our server. */
static bool server_takes(struct pmix_server *server, const struct pmix_state *state)
{
    const bool serves = state->uri[0] != '\0';
    if (serves && !uri_is_good(state->uri, server->config->remote))
        return false;
    if (!serves) {
        snprintf(server->state.failed, sizeof(server->state.failed), "%s", state->failed);
        return true;
    }
    server->silent = 0;
    const bool begins = server->state.pid != state->pid || strcmp(server->uri, state->uri) != 0;
    server->state = *state;
    if (begins)
        server_begins(server, state);
    if (server->next != NULL && server_has(server))
        server_go_on(server);
    return true;
}

/* Process lines of a child; returns the number of bytes processed. */
static size_t server_on_said(const unsigned char *bytes, size_t n, void *cbdata)
{
    struct pmix_server *server = cbdata;
    size_t gone = 0;
    for (const unsigned char *end; (end = memchr(bytes + gone, '\n', n - gone)) != NULL;
         gone = (size_t)(end - bytes) + 1) {
        struct pmix_state state;
        if (pmix_state_read((const char *)bytes + gone, (size_t)(end - bytes) - gone, &state) &&
            state.pid == child_pid(server->child))
            (void)server_takes(server, &state);
    }
    return gone;
}

/* ---- a unit ------------------------------------------------------------------------------------------- */

static void server_lost_unit(struct pmix_server *server)
{
    if (server->state.pid == 0)
        return;
    server->status.parted = server->state.connected;
    server->state = (struct pmix_state){0};
    supervisor_lost(&server->life, "pmix: its unit has ended", true, server_now(), clock_now(CLOCK_REALTIME));
    if (server->next != NULL)
        server_go_on(server);
    if (server->replaced != NULL)
        server->replaced(server->replaced_cbdata);
}

/* Read the unit's status file, and check that its process still exists. */
static void server_look_at_unit(struct pmix_server *server)
{
    char path[PATH_MAX + sizeof(PMIX_STATUS_FILE)];
    struct pmix_state state;
    void *bytes = NULL;
    size_t size = 0;
    snprintf(path, sizeof(path), "%s/" PMIX_STATUS_FILE, server->folder);
    const bool good = file_read(path, PMIX_STATUS_MAX, &bytes, &size) == 0 &&
                      pmix_state_read(bytes, size, &state) && (kill(state.pid, 0) == 0 || errno == EPERM);
    free(bytes);
    if (!good || (server->state.pid != 0 && server->state.pid != state.pid))
        server_lost_unit(server);
    if (good)
        (void)server_takes(server, &state);
}

/* ---- a child ------------------------------------------------------------------------------------------ */

static void server_drop_child(struct pmix_server *server)
{
    watch_free(server->keeps);
    server->keeps = NULL;
    if (server->channel >= 0)
        close(server->channel);
    server->channel = -1;
    server->child = NULL;
}

static void server_lost(struct pmix_server *server, const char *why)
{
    char text[sizeof(server->life.why)];
    const bool served = server->state.pid != 0;
    const char *failed = server->state.failed;
    snprintf(text, sizeof(text), "%s%s%.200s", failed[0] != '\0' ? "pmix: cannot serve: " : why, "", failed);
    server->status.parted = server->state.connected;
    server->state = (struct pmix_state){0};
    server_drop_child(server);
    const int64_t pause =
        supervisor_lost(&server->life, text, served, server_now(), clock_now(CLOCK_REALTIME));
    if (!server->wanted) /* the first child could not start */
        return;
    log_warning("%s; another one replaces it%s", server->life.why, pause > 0 ? " after a pause" : "");
    timer_after(server->again, pause);
    if (server->next != NULL)
        server_go_on(server);
    if (server->replaced != NULL)
        server->replaced(server->replaced_cbdata);
}

static void server_on_child_ended(struct child_result *result, void *cbdata)
{
    struct pmix_server *server = cbdata;
    server->never = result->exit_status == EXIT_CONFIG;
    server_lost(server, result->code == PMIXFAB_OK ? "pmix: the server has ended" : result->err.text);
}

/* Store the child's listening socket for its successor. */
static void server_on_socket(int fd, void *arg)
{
    struct pmix_server *server = arg;
    int socket;
    if (!pmix_take_socket(fd, &socket)) {
        watch_free(server->keeps);
        server->keeps = NULL;
    } else if (socket >= 0) {
        if (server->socket >= 0)
            close(server->socket);
        server->socket = socket;
    }
}

/* Return whether this process may start a child of another user: the service manager may have restricted
 * root's capabilities. */
static bool server_may_be_another(void)
{
    static const unsigned long needed[] = {CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_KILL};
    bool may = geteuid() == 0;
    for (size_t i = 0; may && i < sizeof(needed) / sizeof(needed[0]); i++)
        may = prctl(PR_CAPBSET_READ, needed[i], 0, 0, 0) == 1;
    return may;
}

/* Called once, so that the next child gets the same user even if the user directory does not answer then. */
static int server_find_user(struct pmix_server *server, struct fab_err *err)
{
    struct passwd entry, *user = NULL;
    char buffer[4096];
    if (server->config->pmix_start && !server_may_be_another())
        return PMIXFAB_OK;
    const int failed = getpwnam_r(PMIX_USER, &entry, buffer, sizeof(buffer), &user);
    if (failed != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "the user " PMIX_USER " cannot be looked up: %s",
                        strerror(failed));
    if (user == NULL)
        return PMIXFAB_OK;
    server->status.separated = true;
    server->status.uid = user->pw_uid;
    server->gid = user->pw_gid;
    return PMIXFAB_OK;
}

/* The library makes its folder accessible to all and removes files that look like its own, so the server gets
 * its own folder. */
static int server_make_folder(const struct pmix_server *server, struct fab_err *err)
{
    const uid_t uid = server->status.separated ? server->status.uid : geteuid();
    struct stat st;
    if (mkdir(server->folder, 0755) != 0 && errno != EEXIST)
        return fab_fail(err, PMIXFAB_ERR_IO, "%.300s: cannot be created: %s", server->folder,
                        strerror(errno));
    if (lstat(server->folder, &st) != 0 || !S_ISDIR(st.st_mode) ||
        (st.st_uid != uid && st.st_uid != geteuid()))
        return fab_fail(err, PMIXFAB_ERR_PERM,
                        "%.300s: it is a link, or not a folder of fabricd: move it out of the run directory",
                        server->folder);
    if (st.st_uid != uid && lchown(server->folder, uid, server->gid) != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "%.300s: cannot be made for the user " PMIX_USER ": %s",
                        server->folder, strerror(errno));
    return PMIXFAB_OK;
}

/* False: the settings cannot be written, and the server has to wait. */
static bool server_write_settings(struct pmix_server *server)
{
    struct fab_err err = {""};
    const bool failed = pmix_settings_write(server->config, &err) != PMIXFAB_OK;
    if (failed && !server->no_settings && file_has_room(server->config->rundir))
        log_error("%s: PMIx tools are not served", err.text);
    else if (failed && !server->no_settings)
        log_error(
            "the file system of the run directory %s is full: PMIx tools are not served until there is room",
            server->config->rundir);
    server->no_settings = failed;
    return !failed;
}

/* Return the path of fabricd-pmix, in the folder of this program. */
static void server_program(char program[PATH_MAX])
{
    const ssize_t n = readlink("/proc/self/exe", program, PATH_MAX - sizeof(PMIX_PROGRAM) - 1);
    char *slash;
    program[n > 0 ? n : 0] = '\0';
    slash = strrchr(program, '/');
    strcpy(slash == NULL ? program : slash + 1, PMIX_PROGRAM);
}

static int server_spawn(struct pmix_server *server, int channel, struct fab_err *err)
{
    char program[PATH_MAX], daemon[16], user[40] = "0:0";
    server_program(program);
    snprintf(daemon, sizeof(daemon), "%d", (int)getpid());
    snprintf(user, sizeof(user), "%u:%u", (unsigned)server->status.uid, (unsigned)server->gid);
    char *argv[] = {PMIX_PROGRAM, "--child-of",   daemon, "--rundir", server->config->rundir,
                    "--folder",   server->folder, NULL,   NULL,       NULL};
    if (server->status.separated) {
        argv[7] = "--user";
        argv[8] = user;
    }
    const struct child_order order = {.what = "pmix",
                                      .program = program,
                                      .ours = true,
                                      .argv = argv,
                                      .channel = channel,
                                      .logs = true,
                                      .many = true,
                                      .limit = 65536,
                                      .said = server_on_said,
                                      .done = server_on_child_ended,
                                      .cbdata = server};
    return child_start(server->base, &order, &server->child, err);
}

static int server_next(struct pmix_server *server, struct fab_err *err)
{
    int ends[2];
    int rc = server_make_folder(server, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "pmix: no socket: %s", strerror(errno));
    server->channel = ends[0];
    (void)pmix_give_socket(ends[0], server->socket);
    server->silent = 0;
    server->never = false;
    supervisor_began(&server->life, server_now());
    rc = server_spawn(server, ends[1], err);
    close(ends[1]);
    if (rc == PMIXFAB_OK) {
        server->keeps = watch_new(server->base, server->channel, WATCH_READ, server_on_socket, server);
        return PMIXFAB_OK;
    }
    server_drop_child(server);
    return rc;
}

static void server_on_again(void *arg)
{
    struct pmix_server *server = arg;
    struct fab_err err = {""};
    if (server->child == NULL && server->config->pmix_start && !server->no_settings &&
        server_next(server, &err) != PMIXFAB_OK)
        server_lost(server, err.text);
}

static void server_kill(struct pmix_server *server, const char *why)
{
    child_cancel(server->child);
    server->child = NULL;
    server_lost(server, why);
}

static void server_on_pulse(void *arg)
{
    struct pmix_server *server = arg;
    char why[100];
    timer_after(server->pulse, PULSE_MS);
    if (server->no_uri)
        server_write_uri(server);
    if (server->no_settings && server_write_settings(server))
        timer_after(server->again, 0);
    if (!server->config->pmix_start) {
        server_look_at_unit(server);
        return;
    }
    if (server->child == NULL)
        return;
    const bool serves = server->state.pid != 0;
    server->silent++;
    if (serves && server->silent > SILENCE) {
        snprintf(why, sizeof(why), "pmix: no answer for %d s: killed", SILENCE * PULSE_MS / 1000);
        server_kill(server, why);
    } else if (!serves && server->silent > START_MS / PULSE_MS) {
        server_kill(server, "pmix: not serving in time: killed");
    }
}

/* ---- creation and end --------------------------------------------------------------------------------- */

struct pmix_server *pmix_server_new(void)
{
    struct pmix_server *server = calloc(1, sizeof(*server));
    if (server != NULL)
        server->channel = server->socket = -1;
    return server;
}

void pmix_server_free(struct pmix_server *server)
{
    if (server == NULL)
        return;
    pmix_server_stop(server);
    free(server);
}

/* Run the loop until the child serves, has ended, or its time is over. */
static int server_wait(struct pmix_server *server, struct fab_err *err)
{
    bool left = false;
    while (server->state.pid == 0 && server->child != NULL && !left &&
           server_now() - server->life.began < START_MS)
        left = event_base_loop(server->base, EVLOOP_ONCE) != 0 || event_base_got_break(server->base);
    if (server->child == NULL && server->never)
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "%s", server->life.why);
    return PMIXFAB_OK;
}

int pmix_server_start(struct pmix_server *server, struct event_base *base, const struct config *config,
                      struct fab_err *err)
{
    server->base = base;
    server->config = config;
    server->life = (struct supervisor){.again = {.first = FIRST_PAUSE, .most = MAX_PAUSE, .at_once = AT_ONCE},
                                       .good_ms = GOOD_MS};
    snprintf(server->folder, sizeof(server->folder), "%s%s", config->rundir,
             config->pmix_start ? "/pmix" : "-pmix");
    server->again = timer_new(base, server_on_again, server);
    server->pulse = timer_new(base, server_on_pulse, server);
    server->wait = timer_new(base, server_on_wait, server);
    int rc = server->again == NULL || server->pulse == NULL || server->wait == NULL
                 ? fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory")
                 : server_find_user(server, err);
    if (rc == PMIXFAB_OK && server_write_settings(server) && config->pmix_start) {
        rc = server_next(server, err);
        if (rc == PMIXFAB_OK)
            rc = server_wait(server, err);
    }
    if (rc != PMIXFAB_OK) {
        pmix_server_stop(server);
        return rc;
    }
    server->wanted = true;
    if (config->pmix_start && server->child == NULL && !server->no_settings) {
        log_warning("%s; fabricd tries again", server->life.why);
        timer_after(server->again, FIRST_PAUSE);
    }
    server_on_pulse(server);
    return PMIXFAB_OK;
}

void pmix_server_stop(struct pmix_server *server)
{
    char path[PATH_MAX + 16];
    server->wanted = false;
    if (server->channel >= 0)
        shutdown(server->channel, SHUT_RDWR); /* the child ends then */
    child_leave(server->child, false);
    child_cancel(server->child);
    server_drop_child(server);
    timer_free(server->again);
    timer_free(server->pulse);
    timer_free(server->wait);
    if (server->socket >= 0)
        close(server->socket);
    if (server->config != NULL) {
        pmix_settings_remove(server->config);
        if (server->config->pmix_start) {
            snprintf(path, sizeof(path), "%s/planes-given", server->folder);
            unlink(path);
            rmdir(server->folder);
        }
    }
    *server = (struct pmix_server){.channel = -1,
                                   .socket = -1,
                                   .replaced = server->replaced,
                                   .replaced_cbdata = server->replaced_cbdata};
}

void pmix_server_repair(struct pmix_server *server)
{
    struct fab_err err = {""};
    if (!server->wanted)
        return;
    (void)server_write_settings(server);
    if (server->config->pmix_start && server_make_folder(server, &err) != PMIXFAB_OK)
        log_error("%s", err.text);
    if (server->uri[0] != '\0')
        server_write_uri(server);
}

void pmix_server_on_replaced(struct pmix_server *server, void (*fn)(void *cbdata), void *cbdata)
{
    server->replaced = fn;
    server->replaced_cbdata = cbdata;
}

/* ---- state -------------------------------------------------------------------------------------------- */

const char *pmix_server_uri(const struct pmix_server *server)
{
    return server->uri;
}

void pmix_server_status(const struct pmix_server *server, struct pmix_server_status *status)
{
    *status = server->status;
    status->pid = server->state.pid;
    status->subscribers = server->state.subscribers;
    status->connected = server->state.connected;
    status->filtered = server->state.filtered;
    status->confined = server->state.confined;
    status->bounded = server->state.bounded;
    status->guarded = server->state.guarded;
    status->replaced = server->life.replaced;
    status->last = server->life.last;
    status->why = server->state.failed[0] != '\0' ? server->state.failed : server->life.why;
}
