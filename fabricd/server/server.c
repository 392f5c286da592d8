#include "fabricd/server/server.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pmix.h>
#include <pmix_server.h>
#include <pmix_tool.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "fabricd/base/address.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/server/attributes.h"
#include "fabricd/server/long_poll.h"
#include "fabricd/server/server_answers.h"
#include "guard/guard.h"

static pmix_proc_t self;
static char uri[512];
static char library_dir[4096]; /* for the PMIx library's files */
static bool running;
static atomic_uint next_tool;
static const struct config *settings; /* the caller's, while the server runs */
static int given_socket = -1;
static bool took_over;

/* ---- connections -------------------------------------------------------------------------------- */

static pmix_status_t client_connected(const pmix_proc_t *proc, void *object, pmix_info_t *info, size_t n,
                                      pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)object, (void)info, (void)n, (void)cbfunc, (void)cbdata;
    log_debug("pmix: client %s:%u connected", proc->nspace, proc->rank);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t client_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t cbfunc,
                                      void *cbdata)
{
    (void)object, (void)cbfunc, (void)cbdata;
    log_debug("pmix: client %s:%u left", proc->nspace, proc->rank);
    return PMIX_OPERATION_SUCCEEDED;
}

/* [pmix] foreign_tools */
static bool tool_is_admitted(uid_t user)
{
    if (settings->foreign_tools == FOREIGN_YES || user == 0 || user == geteuid())
        return true;
    bool member = false;
    for (size_t i = 0; i < settings->n_tool_users; i++)
        member = member || user == settings->tool_users[i];
    return settings->foreign_tools == FOREIGN_GROUP && member;
}

/*
 * Assign a name to a connecting tool if it has none. The library allows only one tool of a name. It also
 * keeps its data of each namespace (50 KB) until the server ends, so all tools share one namespace.
 */
static void server_tool_connected(pmix_info_t *info, size_t n, pmix_tool_connection_cbfunc_t cbfunc,
                                  void *cbdata)
{
    pmix_proc_t proc;
    uid_t user = (uid_t)-1;
    PMIX_PROC_CONSTRUCT(&proc);
    for (size_t i = 0; i < n; i++) {
        const pmix_value_t *value = &info[i].value;
        if (PMIX_CHECK_KEY(&info[i], PMIX_USERID) && value->type == PMIX_UINT32)
            user = value->data.uint32;
        if (PMIX_CHECK_KEY(&info[i], PMIX_NSPACE) && info[i].value.type == PMIX_STRING &&
            info[i].value.data.string != NULL)
            PMIX_LOAD_NSPACE(proc.nspace, info[i].value.data.string);
        else if (PMIX_CHECK_KEY(&info[i], PMIX_RANK) && info[i].value.type == PMIX_PROC_RANK)
            proc.rank = info[i].value.data.rank;
    }
    if (!tool_is_admitted(user)) {
        log_debug("pmix: a tool of user %u is refused: foreign_tools", user);
        cbfunc(PMIX_ERR_NO_PERMISSIONS, &proc, cbdata);
        return;
    }
    if (proc.nspace[0] == '\0') {
        snprintf(proc.nspace, sizeof(proc.nspace), "%.200s.tool", self.nspace);
        proc.rank = atomic_fetch_add(&next_tool, 1) % (PMIX_RANK_VALID);
    }
    log_debug("pmix: tool %s:%u connected", proc.nspace, proc.rank);
    cbfunc(PMIX_SUCCESS, &proc, cbdata);
}

/* Do not repeat the names that an earlier server has given. */
static void choose_names_of_tools(void)
{
    atomic_store(&next_tool, (unsigned)(clock_now(CLOCK_REALTIME) / 1000));
}

/* ---- the listening socket ----------------------------------------------------------------------- */

void server_listen_on(int fd)
{
    given_socket = fd;
}

/* Return whether the socket listens at this port; 0: at any port. */
static bool socket_listens(int fd, unsigned port, struct sockaddr_in *address)
{
    int listens = 0;
    socklen_t size = sizeof(listens), length = sizeof(*address);
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
           getsockname(fd, (struct sockaddr *)address, &length) == 0 && address->sin_family == AF_INET &&
           (port == 0 || ntohs(address->sin_port) == port);
}

/* Return whether the socket listens at the configured address: the earlier server may have had another one.
 */
static bool socket_is_configured(int fd, const struct config *config)
{
    struct sockaddr_in address = {.sin_family = AF_UNSPEC};
    char wanted[INET_ADDRSTRLEN], has[INET_ADDRSTRLEN] = "";
    struct fab_err err = {""};
    if (!socket_listens(fd, config->pmix_port, &address))
        return false;
    const bool loopback = ntohl(address.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    if (!config->remote || loopback)
        return config->remote != loopback;
    inet_ntop(AF_INET, &address.sin_addr, has, sizeof(has));
    return config->pmix_listen == NULL ||
           (interface_find(config->pmix_listen, wanted, &err) == PMIXFAB_OK && strcmp(wanted, has) == 0);
}

int server_listening(void)
{
    const char *colon = strrchr(uri, ':');
    const unsigned port = colon == NULL ? 0 : (unsigned)strtoul(colon + 1, NULL, 10);
    struct sockaddr_in address = {.sin_family = AF_UNSPEC};
    for (int fd = 3; fd < 1024 && port != 0; fd++)
        if (socket_listens(fd, port, &address))
            return fd;
    return -1;
}

/* Pass the socket to the library. False: the library binds its own. */
static bool server_hand_over(const struct config *config)
{
    const struct pmix_guard *guard = guard_find();
    const bool given = given_socket >= 0 && guard != NULL && socket_is_configured(given_socket, config) &&
                       guard->listen_on(given_socket);
    if (given_socket >= 0 && !given)
        close(given_socket);
    given_socket = -1;
    took_over = given;
    return given;
}

bool server_took_over(void)
{
    return took_over;
}

/* ---- start -------------------------------------------------------------------------------------- */

/*
 * Make the library's own directory, below the run directory. If the mode of its directory lacks a bit of
 * 0755, the library treats the directory as its own. It then opens the directory to all users, and removes
 * all files in it at its end. So the run directory must not be used for this. (A library whose process is
 * killed leaves files behind. The lock of the run directory is held, so these files are old.)
 */
static int make_library_dir(const char *rundir, struct fab_err *err)
{
    char path[sizeof(library_dir)];
    struct stat st;
    snprintf(path, sizeof(path), "%s/pmix", rundir);
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be created: %s", path, strerror(errno));
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL || fstat(fd, &st) != 0 || st.st_uid != geteuid() || fchmod(fd, 0755) != 0) {
        if (d != NULL)
            closedir(d);
        else if (fd >= 0)
            close(fd);
        return fab_fail(err, PMIXFAB_ERR_PERM,
                        "%s: it is a link, or not a folder of fabricd: move it out of the run directory",
                        path);
    }
    for (struct dirent *entry = readdir(d); entry != NULL; entry = readdir(d))
        if (strncmp(entry->d_name, "pmix.", 5) == 0)
            unlinkat(fd, entry->d_name, 0);
    closedir(d);
    memcpy(library_dir, path, sizeof(path));
    return PMIXFAB_OK;
}

/* Return whether a munged listens at this path: a killed munged leaves the file. A munged whose queue is
 * full, because it hangs, counts as listening. */
static bool munged_answers(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool answers = connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN;
    close(fd);
    return answers;
}

/*
 * Allow connections of other hosts with munge only, since the library's own security trusts any claimed uid.
 * A node whose scheduler is on the same host works without munge, since its server accepts no other hosts. If
 * it needs munge for its deliveries, the delivery reports that.
 */
static int choose_security(bool remote, struct fab_err *err)
{
    /* libmunge uses only these places, and PMIx cannot set another one. */
    static const char *const sockets[] = {"/run/munge/munge.socket.2", "/var/run/munge/munge.socket.2"};
    bool found = false;
    for (size_t i = 0; !found && i < sizeof(sockets) / sizeof(sockets[0]); i++)
        found = munged_answers(sockets[i]);
    if (!found && !remote)
        return PMIXFAB_OK;
    if (!found)
        return fab_fail(
            err, PMIXFAB_ERR_PERM,
            "remote = yes: connections of other hosts need munge, and no munged answers at %s: start "
            "munged, or set remote = no",
            sockets[0]);
    setenv("PMIX_MCA_psec", "munge", 1);
    return PMIXFAB_OK;
}

/* Read the library's report file: the URI and the version, a line each. */
static int server_read_uri(const char *path, bool remote, struct fab_err *err)
{
    FILE *f = fopen(path, "re");
    if (f == NULL || fgets(uri, sizeof(uri), f) == NULL)
        uri[0] = '\0';
    if (f != NULL)
        fclose(f);
    unlink(path);
    uri[strcspn(uri, "\r\n")] = '\0';
    if (uri[0] == '\0')
        return fab_fail(err, PMIXFAB_ERR_IO, "the PMIx library wrote no URI to %s", path);
    bool loopback = strstr(uri, "://127.") != NULL || strstr(uri, "://[::1]") != NULL;
    if (remote && loopback)
        log_warning(
            "remote = yes, but the PMIx library listens at %s: no other interface is up, so no other host "
            "can connect; bring one up and restart",
            uri);
    /* Without a loopback interface the library uses another one: it would listen at an unexpected address. */
    if (!remote && !loopback)
        return fab_fail(err, PMIXFAB_ERR_PERM,
                        "the PMIx library listens at %s, not on loopback: bring the interface lo up, or set "
                        "remote = yes",
                        uri);
    return PMIXFAB_OK;
}

/* Choose the server's name; all servers that are connected to each other need different names. */
static int choose_name(const struct config *config, struct fab_err *err)
{
    char nspace[sizeof(self.nspace)];
    int len =
        snprintf(nspace, sizeof(nspace), "%s", config->role == ROLE_SCHEDULER ? "fabricd" : "fabricd.node.");
    if (config->role == ROLE_HOST)
        len = snprintf(nspace, sizeof(nspace), "fabricd.host.%d.%lx", (int)getpid(),
                       (long)(clock_now(CLOCK_REALTIME) / 1000000));
    if (config->role == ROLE_NODE)
        len += snprintf(nspace + len, sizeof(nspace) - (size_t)len, "%s", config->host);
    if (len >= (int)sizeof(nspace))
        return fab_fail(err, PMIXFAB_ERR_RANGE, "the name of this host is too long for PMIx: set host");
    PMIX_LOAD_PROCID(&self, nspace, 0);
    return PMIXFAB_OK;
}

/* Choose where the library listens; settings go through the environment. The library aborts if a port is in
 * use, so check it first. */
static int choose_address(const struct config *config, bool remote, bool given, struct fab_err *err)
{
    char port[16], host[INET_ADDRSTRLEN] = "127.0.0.1", whole[sizeof(host) + 16];
    const char *listen = config->pmix_listen;
    int rc = listen == NULL ? PMIXFAB_OK : interface_find(listen, host, err);
    snprintf(port, sizeof(port), "%u", config->pmix_port);
    snprintf(whole, sizeof(whole), "%s:%s", host, port);
    if (rc == PMIXFAB_OK && config->pmix_port != 0 && !given && (!remote || listen != NULL))
        rc = address_try(whole, true, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (config->pmix_port != 0 && !given)
        setenv("PMIX_MCA_ptl_base_ipv4_port", port, 1);
    char *include = listen == NULL ? NULL : interface_for_pmix(listen);
    if (listen != NULL && (include == NULL || setenv("PMIX_MCA_ptl_base_if_include", include, 1) != 0))
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    free(include);
    return rc;
}

static void server_on_guard_log(const char *line)
{
    log_warning("%s", line);
}

/* Without a guard the server has the library's own behaviour. */
static void server_start_guard(const struct config *config)
{
    const struct pmix_guard *guard = guard_find();
    if (guard == NULL)
        return;
    guard->log_to(server_on_guard_log);
    guard->on_left(long_poll_left);
    guard->admit(config->foreign_tools == FOREIGN_YES ? NULL : tool_is_admitted);
    guard->serve(config->role == ROLE_HOST ? GUARD_SERVER_USER : GUARD_SERVER_FABRIC);
}

/* Prepare everything that the library needs before its start. */
static int server_prepare(const struct config *config, bool remote, struct fab_err *err)
{
    server_start_guard(config);
    choose_names_of_tools();
    int rc = choose_name(config, err);
    if (rc == PMIXFAB_OK && (remote || config->role == ROLE_NODE))
        rc = choose_security(remote, err);
    if (rc == PMIXFAB_OK)
        rc = choose_address(config, remote, server_hand_over(config), err);
    if (rc == PMIXFAB_OK)
        rc = make_library_dir(config->rundir, err);
    return rc;
}

int server_start(const struct config *config, struct served *served, pmix_server_module_t *module,
                 struct fab_err *err)
{
    char report[sizeof(library_dir) + 16];
    pmix_info_t info[9];
    size_t n = 0;
    uint32_t rank = 0;
    bool yes = true, foreign = config->foreign_tools != FOREIGN_NO,
         is_scheduler = config->role == ROLE_SCHEDULER, remote = is_scheduler && config->remote;
    settings = config;
    int prepared = server_prepare(config, remote, err);
    if (prepared != PMIXFAB_OK)
        return prepared;
    /* No job is launched by this server, so it needs no shared memory with clients. */
    setenv("PMIX_MCA_gds", "hash", 1);
    /*
     * By default the library delays the report of a lost connection until a second has passed without
     * another lost connection. It copies the pending reports each time. With many short connections it
     * would never send a report, and its memory would grow.
     */
    setenv("PMIX_MCA_pmix_event_caching_window", "0", 1);
    snprintf(report, sizeof(report), "%s/pmix.uri", library_dir);
    unlink(report); /* the library would follow a link */
    answers_init(served, remote);
    answer_host_is(config->host);
    if (is_scheduler)
        PMIX_INFO_LOAD(&info[n], PMIX_SERVER_SCHEDULER, &yes, PMIX_BOOL), n++;
    PMIX_INFO_LOAD(&info[n], PMIX_SERVER_TOOL_SUPPORT, &yes, PMIX_BOOL), n++;
#ifdef PMIX_SERVER_ALLOW_FOREIGN_TOOLS /* from 6.1 on */
    PMIX_INFO_LOAD(&info[n], PMIX_SERVER_ALLOW_FOREIGN_TOOLS, &foreign, PMIX_BOOL), n++;
#else
    (void)foreign;
#endif
    PMIX_INFO_LOAD(&info[n], PMIX_SERVER_NSPACE, self.nspace, PMIX_STRING), n++;
    PMIX_INFO_LOAD(&info[n], PMIX_SERVER_RANK, &rank, PMIX_PROC_RANK), n++;
    PMIX_INFO_LOAD(&info[n], PMIX_SERVER_TMPDIR, library_dir, PMIX_STRING), n++;
    PMIX_INFO_LOAD(&info[n], PMIX_SYSTEM_TMPDIR, library_dir, PMIX_STRING), n++;
    PMIX_INFO_LOAD(&info[n], PMIX_TCP_REPORT_URI, report, PMIX_STRING), n++;
    if (remote)
        PMIX_INFO_LOAD(&info[n], PMIX_SERVER_REMOTE_CONNECTIONS, &yes, PMIX_BOOL), n++;
    if (module->client_connected2 == NULL)
        module->client_connected2 = client_connected;
    if (module->client_finalized == NULL)
        module->client_finalized = client_finalized;
    module->tool_connected = server_tool_connected;
    pmix_status_t rc = PMIx_server_init(module, info, n);
    for (size_t i = 0; i < n; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    if (rc != PMIX_SUCCESS)
        return fab_fail(err, remote ? PMIXFAB_ERR_UNSUPPORTED : PMIXFAB_ERR_IO,
                        "cannot start the PMIx server: %s%s", PMIx_Error_string(rc),
                        remote ? ": with remote = yes it needs a network interface besides the loopback"
                               : "");
    running = true;
    attributes_register();
    int failed = server_read_uri(report, remote, err);
    if (failed != PMIXFAB_OK)
        server_stop();
    return failed;
}

void server_stop(void)
{
    const struct pmix_guard *guard = guard_find();
    if (running && guard != NULL)
        guard->stop();
    if (running)
        PMIx_server_finalize();
    running = false;
    if (guard != NULL)
        guard->on_left(NULL);
    if (library_dir[0] != '\0')
        rmdir(library_dir);
    uri[0] = '\0';
}

const char *server_uri(void)
{
    return uri;
}

const pmix_proc_t *server_self(void)
{
    return &self;
}
