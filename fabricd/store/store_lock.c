/*
 * store_lock.c - one fabricd a store: flock() on PATH.lock, which holds the pid of whoever has it, and what
 * is known of the store apart from it (store_marks.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "fabricd/base/file_io.h"
#include "fabricd/store/file_priv.h"

/* The holder's pid, for the message; 0 where it cannot be told. */
static long lock_owner_pid(int fd)
{
    char text[24] = {0};
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    long pid = n > 0 ? strtol(text, NULL, 10) : 0;
    return pid > 0 ? pid : 0;
}

int store_lock(struct store *store, struct fab_err *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s.lock", store->path);
    if (n < 0 || (size_t)n >= sizeof path)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "store %.200s...: the path is too long", store->path);

    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0)
        return fab_fail(
            err, PMIXFAB_ERR_IO,
            "store %s: cannot open its lock %s: %s: the directory must exist and be writable for fabricd",
            store->path, path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int saved = errno;
        long pid = lock_owner_pid(fd);
        close(fd);
        if (saved != EWOULDBLOCK)
            return fab_fail(err, PMIXFAB_ERR_IO, "store %s: cannot lock %s: %s", store->path, path,
                            strerror(saved));
        if (pid == 0)
            return fab_fail(
                err, PMIXFAB_ERR_BUSY,
                "store %s: another fabricd has it open; stop that one, or give this one its own --store",
                store->path);
        return fab_fail(
            err, PMIXFAB_ERR_BUSY,
            "store %s: fabricd with pid %ld has it open; stop that one, or give this one its own --store",
            store->path, pid);
    }
    store->lock_fd = fd;
    file_hide(path);
    store_marks_read(store);
    store_marks_write(store, getpid());
    return PMIXFAB_OK;
}

/* The file stays: whoever removes it while another waits for it would make two locks of one name. */
void store_unlock(struct store *store)
{
    if (store->lock_fd < 0)
        return;
    store_marks_write(store, 0);
    close(store->lock_fd);
    store->lock_fd = -1;
}
