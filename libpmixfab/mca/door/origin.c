#include "mca/door/origin.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

union origin_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage room;
};

static void origin_put(const union origin_address *from, uint32_t to[4], uint16_t *port)
{
    if (from->any.sa_family == AF_INET6) {
        memcpy(to, &from->v6.sin6_addr, sizeof(from->v6.sin6_addr));
        *port = from->v6.sin6_port;
    } else {
        to[0] = from->v4.sin_addr.s_addr;
        *port = from->v4.sin_port;
    }
}

/* The user of the socket at the other end, where that is on this host. */
static bool origin_ask(const union origin_address *theirs, const union origin_address *ours, uint32_t *uid)
{
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 ask;
    } question = {
        .header = {.nlmsg_len = sizeof(question),
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST},
        .ask = {.sdiag_family = (uint8_t)theirs->any.sa_family,
                .sdiag_protocol = IPPROTO_TCP,
                .idiag_states = UINT32_MAX,
                .id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}},
    };
    struct {
        struct nlmsghdr header;
        struct inet_diag_msg told;
        char rest[1024];
    } answer;
    const struct timeval patience = {.tv_usec = 100000};
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return false;
    origin_put(theirs, question.ask.id.idiag_src, &question.ask.id.idiag_sport);
    origin_put(ours, question.ask.id.idiag_dst, &question.ask.id.idiag_dport);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    bool found =
        send(fd, &question, sizeof(question), 0) == (ssize_t)sizeof(question) &&
        recv(fd, &answer, sizeof(answer), 0) >= (ssize_t)(sizeof(answer.header) + sizeof(answer.told)) &&
        answer.header.nlmsg_type == SOCK_DIAG_BY_FAMILY;
    close(fd);
    /* Of a socket that was closed the kernel says root's, and that it has no inode. */
    found = found && answer.told.idiag_inode != 0;
    if (found)
        *uid = answer.told.idiag_uid;
    return found;
}

void origin_of(int fd, struct origin *out)
{
    union origin_address theirs, ours;
    socklen_t theirs_size = sizeof(theirs), ours_size = sizeof(ours);
    uint16_t port;
    uint32_t words[4] = {0};
    memset(out, 0, sizeof(*out));
    memset(&theirs, 0, sizeof(theirs));
    memset(&ours, 0, sizeof(ours));
    if (getpeername(fd, &theirs.any, &theirs_size) != 0 || getsockname(fd, &ours.any, &ours_size) != 0)
        return;
    out->local = origin_ask(&theirs, &ours, &out->uid);
    if (out->local)
        return;
    origin_put(&theirs, words, &port);
    if (theirs.any.sa_family == AF_INET) {
        out->address.s6_addr[10] = out->address.s6_addr[11] = 0xff;
        memcpy(&out->address.s6_addr[12], words, 4);
    } else {
        memcpy(&out->address, words, sizeof(out->address));
    }
}

void origin_text(const struct origin *origin, char text[ORIGIN_TEXT])
{
    text[0] = '\0';
    if (origin->local)
        snprintf(text, ORIGIN_TEXT, "uid %u", origin->uid);
    else if (IN6_IS_ADDR_V4MAPPED(&origin->address))
        inet_ntop(AF_INET, &origin->address.s6_addr[12], text, ORIGIN_TEXT);
    else if (!IN6_IS_ADDR_UNSPECIFIED(&origin->address))
        inet_ntop(AF_INET6, &origin->address, text, ORIGIN_TEXT);
}
