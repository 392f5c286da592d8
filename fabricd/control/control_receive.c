/* control_receive.c - an open file from the caller: the daemon may not be able to open it itself. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabricd/base/loop.h"
#include "fabricd/base/watch.h"
#include "fabricd/control/connection.h"

struct receiving {
    struct connection *connection;
    struct watch *arrival;
    received_fn got;
    void *cbdata;
};

static int receive_descriptor(int from)
{
    char byte;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } room = {.bytes = {0}};
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof(room.bytes)};
    int fd = -1;
    if (recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1)
        return -1;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    return fd;
}

static void on_arrival(int from, void *arg)
{
    struct receiving *receiving = arg;
    int fd = receive_descriptor(from);
    watch_pause(receiving->arrival);
    bufferevent_enable(receiving->connection->bev, EV_READ);
    receiving->got(fd, receiving->cbdata);
}

struct receiving *connection_receive(struct connection *connection, received_fn got, void *cbdata)
{
    struct receiving *receiving = malloc(sizeof(*receiving));
    if (receiving == NULL)
        return NULL;
    *receiving = (struct receiving){.connection = connection, .got = got, .cbdata = cbdata};
    receiving->arrival = watch_new(connection->control->base, bufferevent_getfd(connection->bev), WATCH_READ,
                                   on_arrival, receiving);
    if (receiving->arrival == NULL) {
        connection_receive_end(receiving);
        return NULL;
    }
    bufferevent_disable(connection->bev, EV_READ); /* which would throw the descriptor away */
    connection_send(connection, json_pack("{s:b}", "descriptor", 1));
    return receiving;
}

void connection_receive_end(struct receiving *receiving)
{
    if (receiving == NULL)
        return;
    watch_free(receiving->arrival);
    free(receiving);
}
