#include "fabricd/base/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/util.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int parse(const char *text, struct sockaddr_storage *out, int *size, uint16_t **port,
                 struct fab_err *err)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)out;
    *size = sizeof(*out);
    const bool good = evutil_parse_sockaddr_port(text, (struct sockaddr *)out, size) == 0;
    *port = out->ss_family == AF_INET6 ? &v6->sin6_port : &v4->sin_port;
    if (good && **port != 0)
        return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_SYNTAX,
                    "\"%.80s\": give an address and a port, as 127.0.0.1:9400 or [::1]:9400", text);
}

int address_parse(const char *text, char host[INET6_ADDRSTRLEN], uint16_t *port, struct fab_err *err)
{
    struct sockaddr_storage address = {0};
    uint16_t *at;
    int size, rc = parse(text, &address, &size, &at, err);
    if (rc != PMIXFAB_OK)
        return rc;
    *port = ntohs(*at);
    if (address.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)(void *)&address)->sin6_addr, host, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)&address)->sin_addr, host, INET6_ADDRSTRLEN);
    return PMIXFAB_OK;
}

int address_try(const char *text, bool port, struct fab_err *err)
{
    const int yes = 1; /* connections of before that are not over yet are no obstacle */
    struct sockaddr_storage address = {0};
    uint16_t *at;
    int size, rc = parse(text, &address, &size, &at, err);
    if (rc != PMIXFAB_OK)
        return rc;
    *at = port ? *at : 0;
    const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        bind(fd, (struct sockaddr *)&address, (socklen_t)size) != 0)
        rc = fab_fail(err, PMIXFAB_ERR_IO, "%.80s: this host cannot listen there: %s", text, strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}
