/* relay_link.c - the one connection of a relaying server to its scheduler. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pmix_tool.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pmix/relay/relay_state.h"
#include "pmix/relay/relay_tags.h"
#include "topo/base/library_log.h"

#define PROBE_MS 2000

bool relay_is_uri(const char *where)
{
    return strstr(where, ";tcp4://") != NULL || strstr(where, ";tcp6://") != NULL;
}

/* ---- the scheduler's address --------------------------------------------------------------------- */

/* A restarted scheduler has another address: the run directory is read for each connection. */
static bool relay_read_uri(const char *where, char *uri, size_t size)
{
    char path[4096];
    if (relay_is_uri(where)) {
        snprintf(uri, size, "%s", where);
        return true;
    }
    snprintf(path, sizeof(path), "%s/fabricd.uri", where);
    FILE *f = fopen(path, "re");
    if (f == NULL || fgets(uri, (int)size, f) == NULL)
        uri[0] = '\0';
    if (f != NULL)
        fclose(f);
    uri[strcspn(uri, "\r\n")] = '\0';
    return relay_is_uri(uri);
}

/* "name.0;tcp4://127.0.0.1:4711", "name.0;tcp4://scheduler:4711" or "name.0;tcp6://[::1]:4711" */
static bool split_uri(const char *uri, char *host, size_t host_size, char *port, size_t port_size)
{
    const char *p = strstr(uri, ";tcp");
    p = p == NULL ? NULL : strstr(p, "://");
    if (p == NULL)
        return false;
    p += 3;
    size_t all = strcspn(p, ";");
    const char *colon = memrchr(p, ':', all);
    if (colon == NULL)
        return false;
    size_t n = (size_t)(colon - p), n_port = all - n - 1;
    if (n > 1 && p[0] == '[' && p[n - 1] == ']')
        p++, n -= 2;
    if (n == 0 || n >= host_size || n_port == 0 || n_port >= port_size)
        return false;
    memcpy(host, p, n);
    host[n] = '\0';
    memcpy(port, colon + 1, n_port);
    port[n_port] = '\0';
    return true;
}

/*
 * Resolve the name, for each connection, because the library accepts numeric addresses only and the name may
 * have moved. NULL: not possible.
 */
static struct addrinfo *resolve_uri(char *uri, size_t size)
{
    char host[256], port[16], number[INET6_ADDRSTRLEN + 16];
    struct addrinfo *address = NULL;
    if (!split_uri(uri, host, sizeof(host), port, sizeof(port)))
        return NULL;
    const bool v6 = strstr(uri, ";tcp6://") != NULL;
    const struct addrinfo hints = {
        .ai_socktype = SOCK_STREAM, .ai_family = v6 ? AF_INET6 : AF_INET, .ai_flags = AI_NUMERICSERV};
    if (getaddrinfo(host, port, &hints, &address) != 0)
        return NULL;
    size_t name = (size_t)(strstr(uri, "://") - uri) + 3;
    if (getnameinfo(address->ai_addr, address->ai_addrlen, number, sizeof(number), NULL, 0, NI_NUMERICHOST) ==
        0)
        snprintf(uri + name, size - name, v6 ? "[%s]:%s" : "%s:%s", number, port);
    return address;
}

/* ---- test of the connection ------------------------------------------------------------------------ */

static bool relay_fd_poll(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    int n;
    do
        n = poll(&p, 1, PROBE_MS);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

/*
 * Connect first without the library, which would wait without a deadline. No data are sent: a live server
 * closes the connection at once, a stopped or unreachable one does not.
 */
static bool is_alive(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
    socklen_t size = sizeof(error);
    char byte;
    if (fd < 0)
        return false;
    bool alive = connect(fd, address->ai_addr, address->ai_addrlen) == 0 ||
                 (errno == EINPROGRESS && relay_fd_poll(fd, POLLOUT) &&
                  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0);
    alive = alive && shutdown(fd, SHUT_WR) == 0 && relay_fd_poll(fd, POLLIN) && read(fd, &byte, 1) <= 0;
    close(fd);
    return alive;
}

/* ---- the library's socket -------------------------------------------------------------------------- */

static bool leads_to(int fd, const struct addrinfo *address)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof(peer);
    memset(&peer, 0, sizeof(peer));
    if (getpeername(fd, (struct sockaddr *)&peer, &size) != 0 || peer.ss_family != address->ai_family)
        return false;
    if (peer.ss_family == AF_INET) {
        const struct sockaddr_in *a = (const void *)&peer, *b = (const void *)address->ai_addr;
        return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
    }
    const struct sockaddr_in6 *a = (const void *)&peer, *b = (const void *)address->ai_addr;
    return a->sin6_port == b->sin6_port && memcmp(&a->sin6_addr, &b->sin6_addr, sizeof(a->sin6_addr)) == 0;
}

/*
 * Return a duplicate of the library's descriptor of the connection, the newest to that address; -1: not
 * found. The descriptor shows a lost connection at once; the library does not. It is never read here.
 */
static int watch_socket(const struct addrinfo *address)
{
    int found = -1, yes = 1, idle = 5, interval = 2, count = 3;
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL)
        return -1;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd > found && leads_to(fd, address))
            found = fd;
    }
    closedir(dir);
    if (found >= 0)
        found = fcntl(found, F_DUPFD_CLOEXEC, 0);
    if (found < 0)
        return -1;
    /* also detect a host that disappeared */
    setsockopt(found, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
    setsockopt(found, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(found, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(found, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    return found;
}

void relay_wait(struct relay *relay, int milliseconds)
{
    struct pollfd fds[2] = {{.fd = relay->bell, .events = POLLIN},
                            {.fd = relay->connected ? relay->socket : -1, .events = POLLRDHUP}};
    uint64_t count;
    pthread_mutex_unlock(&relay->lock);
    int n = poll(fds, 2, milliseconds);
    if (n > 0 && fds[0].revents != 0 && read(relay->bell, &count, sizeof(count)) < 0)
        fds[0].revents = 0; /* another poll has read it */
    pthread_mutex_lock(&relay->lock);
    if (n > 0 && fds[1].revents != 0)
        relay_lost(relay);
}

/* ---- connecting --------------------------------------------------------------------------------- */

static bool relay_attach(struct relay *relay, const char *uri, const struct addrinfo *address)
{
    pmix_info_t info[2];
    pmix_proc_t self, server;
    bool yes = true;
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_URI, uri, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_PRIMARY_SERVER, &yes, PMIX_BOOL);
    pmix_status_t rc = PMIx_tool_attach_to_server(&self, &server, info, 2);
    PMIX_INFO_DESTRUCT(&info[0]);
    if (rc != PMIX_SUCCESS) {
        fab_log(PMIXFAB_LOG_WARNING, "relay: %s: %s", uri, PMIx_Error_string(rc));
        return false;
    }
    relay->attached = true;
    relay_repair_questions();
    relay->socket = watch_socket(address);
    pthread_mutex_lock(&relay->lock);
    relay->self = self;
    relay->server = server;
    relay->connected = true;
    pthread_mutex_unlock(&relay->lock);
    fab_log(PMIXFAB_LOG_INFO, "relay: connected to %s", uri);
    return true;
}

bool relay_link_connect(struct relay *relay)
{
    char uri[1024];
    struct addrinfo *address = NULL;
    relay_link_close(relay);
    if (!relay_read_uri(relay->where, uri, sizeof(uri)) ||
        (address = resolve_uri(uri, sizeof(uri))) == NULL) {
        fab_log(PMIXFAB_LOG_DEBUG, "relay: no scheduler address at %s", relay->where);
        return false;
    }
    bool connected =
        (relay_is_uri(relay->where) || relay_owner_is_trusted(relay->where, address)) && is_alive(address);
    if (connected)
        connected = relay_attach(relay, uri, address);
    else
        fab_log(PMIXFAB_LOG_DEBUG, "relay: no answer at %s", uri);
    freeaddrinfo(address);
    return connected;
}

void relay_link_close(struct relay *relay)
{
    if (relay->attached) { /* no thread sends now: the relay's thread has waited for that */
        PMIx_tool_disconnect(&relay->server);
        relay_repair_unanswered();
    }
    relay->attached = false;
    if (relay->socket >= 0)
        close(relay->socket);
    relay->socket = -1;
}
