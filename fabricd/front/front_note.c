#include "fabricd/front/front_note.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for one descriptor. */
union note_control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

/* Of one size for good: who maps it finds all of it. */
static int note_make(void)
{
    int fd = memfd_create("fabricd-front", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && (ftruncate(fd, sizeof(struct guard_note)) != 0 ||
                    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

int note_hand_over(int channel)
{
    char byte = 0;
    union note_control control;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    int note = note_make();
    memset(&control, 0, sizeof(control));
    if (note >= 0) {
        control.header = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(&control.header), &note, sizeof(note));
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
    }
    /* Nothing waits in the socket yet, so there is room. Without the byte the front ends, and is replaced. */
    if (sendmsg(channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT) != 1 && note >= 0) {
        close(note);
        note = -1;
    }
    return note;
}

bool note_read(int note, struct guard_origin *out)
{
    struct guard_note copy;
    memset(out, 0, sizeof(*out));
    if (note < 0 || pread(note, &copy, sizeof(copy), 0) != (ssize_t)sizeof(copy) || copy.noted == 0)
        return false;
    out->local = copy.origin.local != 0;
    if (out->local)
        out->uid = copy.origin.uid;
    else
        out->address = copy.origin.address;
    return out->local || !IN6_IS_ADDR_UNSPECIFIED(&out->address);
}

struct guard_note *note_take(int channel)
{
    char byte;
    union note_control control;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t n;
    int note;
    do
        n = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    const struct cmsghdr *header = n == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header == NULL || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int)))
        return NULL;
    memcpy(&note, CMSG_DATA(header), sizeof(note));
    void *page = mmap(NULL, sizeof(struct guard_note), PROT_READ | PROT_WRITE, MAP_SHARED, note, 0);
    close(note);
    return page == MAP_FAILED ? NULL : page;
}
