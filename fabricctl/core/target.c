/* target.c - a file that appears whole or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricctl/core/ctl.h"

enum ctl_exit ctl_target_failed(const struct ctl_target *t, const char *what)
{
    return ctl_error("%s: %s: %s%s", what, t->shown, strerror(errno),
                     errno == ENOSPC || errno == EDQUOT ? "; free some space, or choose another folder" : "");
}

/*
 * mkostemp makes a private file. A replaced file keeps its mode, and its owner if permitted; a new file gets
 * the usual mode of the process.
 */
static enum ctl_exit target_mode(const struct ctl_target *t, const struct stat *before)
{
    mode_t mask = umask(0);
    umask(mask);
    if (before != NULL && fchown(t->fd, before->st_uid, before->st_gid) != 0 && errno != EPERM)
        return ctl_target_failed(t, "cannot set the owner of");
    if (fchmod(t->fd, before != NULL ? before->st_mode & 0777 : 0666 & ~mask) != 0)
        return ctl_target_failed(t, "cannot set the mode of");
    return CTL_DONE;
}

/* Make a name beside the file itself, not beside a symbolic link to it. */
static enum ctl_exit target_beside(struct ctl_target *t, const char *path, const struct stat *before)
{
    t->path = realpath(path, NULL);
    if (t->path == NULL && errno == ENOENT)
        t->path = strdup(path);
    if (t->path == NULL)
        return ctl_target_failed(t, "cannot write");
    if (asprintf(&t->temporary, "%s.XXXXXX", t->path) < 0) {
        t->temporary = NULL;
        return ctl_nomem();
    }
    t->fd =
        mkostemp(t->temporary, O_CLOEXEC); /* NOLINT(clang-analyzer-unix.Malloc): ctl_target_close() frees */
    if (t->fd < 0) {
        enum ctl_exit status = ctl_target_failed(t, "cannot create a file beside");
        free(t->temporary);
        t->temporary = NULL;
        return status;
    }
    t->close = true;
    return target_mode(t, before);
}

enum ctl_exit ctl_target_open(const char *path, struct ctl_target *t)
{
    struct stat st;
    *t = (struct ctl_target){.shown = path, .fd = -1};
    if (strcmp(path, "-") == 0) {
        t->shown = "standard output";
        t->fd = STDOUT_FILENO;
        return CTL_DONE;
    }
    if (stat(path, &st) != 0)
        return target_beside(t, path, NULL);
    if (S_ISREG(st.st_mode))
        return target_beside(t, path, &st);
    /* a pipe or a device is written directly */
    t->fd = open(path, O_WRONLY | O_CLOEXEC);
    t->close = true;
    return t->fd < 0 ? ctl_target_failed(t, "cannot open") : CTL_DONE;
}

enum ctl_exit ctl_target_write(const struct ctl_target *t, const void *bytes, size_t size)
{
    for (const char *p = bytes; size > 0;) {
        size_t part = size;
        /* A write to a full pipe could begin just after the signal, and never end. So wait for room first. */
        if (t->temporary == NULL && !ctl_interrupted()) {
            ctl_wait(t->fd, POLLOUT, -1);
            part = size < PIPE_BUF ? size : PIPE_BUF;
        }
        const ssize_t n = ctl_interrupted() ? -1 : write(t->fd, p, part);
        if (n < 0 && errno == EINTR && !ctl_interrupted())
            continue;
        if (ctl_interrupted())
            return ctl_error("interrupted: %s: nothing is left behind; run it again", t->shown);
        if (n < 0)
            return errno == EPIPE ? CTL_FAILED : ctl_target_failed(t, "cannot write");
        p += n;
        size -= (size_t)n;
    }
    return CTL_DONE;
}

char *ctl_target_read(const char *path, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO may have no writer */
    struct stat st;
    char *text = NULL;
    size_t have = 0;
    ssize_t got = 1;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        text = malloc((size_t)st.st_size + 1);
    while (text != NULL && have < (size_t)st.st_size && got > 0) {
        got = read(fd, text + have, (size_t)st.st_size - have);
        have += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0)
        close(fd);
    if (text == NULL || got < 0) {
        free(text);
        return NULL;
    }
    text[have] = '\0';
    *size = have;
    return text;
}

/*
 * Copy the file where a second name is not permitted: by the file system, or because another user owns the
 * file (fs.protected_hardlinks). Return -1 with errno on failure.
 */
static int target_copy(const char *path, const char *copy)
{
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    const int to = from < 0 ? -1 : open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct stat st;
    ssize_t n = -1;
    int err;
    if (to >= 0 && fstat(from, &st) == 0 && fchmod(to, st.st_mode & 0777) == 0)
        do
            n = sendfile(to, from, NULL, 1 << 30);
        while (n > 0);
    if (n == 0)
        n = fsync(to);
    err = errno;
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    errno = err;
    return n == 0 ? 0 : -1;
}

static int target_second(const char *path, const char *second)
{
    const int rc = link(path, second);
    return rc != 0 && (errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK) ? target_copy(path, second)
                                                                                 : rc;
}

/* Give the existing file a second name before it loses its first one, so that it exists all the time. */
static enum ctl_exit target_keep(const struct ctl_target *t)
{
    enum ctl_exit status = CTL_DONE;
    char *second = NULL, *old = NULL;
    if (asprintf(&second, "%s.link", t->temporary) < 0)
        second = NULL;
    if (asprintf(&old, "%s.old", t->path) < 0)
        old = NULL;
    if (second == NULL || old == NULL)
        status = ctl_nomem();
    else if (target_second(t->path, second) != 0)
        status = errno == ENOENT ? CTL_DONE : ctl_target_failed(t, "cannot keep the previous file of");
    else if (rename(second, old) != 0)
        status = ctl_target_failed(t, "cannot keep the previous file of");
    if (status != CTL_DONE && second != NULL)
        unlink(second);
    free(second);
    free(old);
    return status;
}

/* Close first: some file systems report a full disk only then. */
enum ctl_exit ctl_target_close(struct ctl_target *t, bool keep, enum ctl_exit status)
{
    if (keep && status == CTL_DONE && t->temporary != NULL && fsync(t->fd) != 0)
        status = ctl_target_failed(t, "cannot write");
    if (t->close && t->fd >= 0 && close(t->fd) != 0 && status == CTL_DONE)
        status = ctl_target_failed(t, "cannot write");
    if (status == CTL_DONE && keep && t->temporary != NULL)
        status = target_keep(t);
    if (status == CTL_DONE && t->temporary != NULL && rename(t->temporary, t->path) != 0)
        status = ctl_target_failed(t, "cannot rename the finished file to");
    if (status != CTL_DONE && t->temporary != NULL)
        unlink(t->temporary);
    free(t->temporary);
    free(t->path);
    return status;
}
