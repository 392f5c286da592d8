/*
 * npy.c - write a matrix without ever holding it.
 */
#include "fabricctl/export/npy.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_BYTES (4u << 20)

/* Where the bytes go. */
struct target {
    const char *shown; /* as the operator named it */
    char *path;        /* what it will be called; NULL: written in place */
    char *temporary;   /* NULL: none (any more) */
    int fd;
    bool close;
};

size_t ctl_npy_header(uint32_t n, unsigned char buf[static CTL_NPY_HEADER_MAX])
{
    static const unsigned char magic[8] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    char dict[CTL_NPY_HEADER_MAX];
    size_t len = (size_t)snprintf(dict, sizeof dict,
                                  "{'descr': '<u2', 'fortran_order': False, 'shape': (%u, %u), }", n, n);
    size_t total = (sizeof magic + 2 + len + 1 + 63) / 64 * 64;

    memset(buf, ' ', total);
    memcpy(buf, magic, sizeof magic);
    buf[8] = (unsigned char)((total - 10) & 0xff);
    buf[9] = (unsigned char)((total - 10) >> 8);
    memcpy(buf + 10, dict, len);
    buf[total - 1] = '\n';
    return total;
}

static enum ctl_exit cannot_write(const struct target *t, const char *what)
{
    return ctl_error("%s: %s: %s%s", what, t->shown, strerror(errno),
                     errno == ENOSPC || errno == EDQUOT ? "; free some space, or choose another folder" : "");
}

/* A name beside the file itself, not beside a symbolic link to it. */
static enum ctl_exit open_beside(struct target *t, const char *path)
{
    mode_t mask = umask(0);

    umask(mask);
    t->path = realpath(path, NULL);
    if (t->path == NULL && errno == ENOENT)
        t->path = strdup(path);
    if (t->path == NULL)
        return cannot_write(t, "cannot write");
    if (asprintf(&t->temporary, "%s.XXXXXX", t->path) < 0) {
        t->temporary = NULL;
        return ctl_nomem();
    }
    t->fd = mkostemp(t->temporary, O_CLOEXEC); /* NOLINT(clang-analyzer-unix.Malloc): npy_close() frees */
    if (t->fd < 0) {
        enum ctl_exit status = cannot_write(t, "cannot create a file beside");

        free(t->temporary);
        t->temporary = NULL;
        return status;
    }
    t->close = true;
    /* mkostemp keeps others out; an answer is as readable as any file that the caller makes */
    if (fchmod(t->fd, 0666 & ~mask) != 0)
        return cannot_write(t, "cannot set the mode of");
    return CTL_DONE;
}

static enum ctl_exit open_target(const char *path, struct target *t)
{
    struct stat st;

    *t = (struct target){.shown = path, .fd = -1};
    if (strcmp(path, "-") == 0) {
        t->shown = "standard output";
        t->fd = STDOUT_FILENO;
        return CTL_DONE;
    }
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode))
        return open_beside(t, path);
    /* a pipe or a device stays what it is */
    t->fd = open(path, O_WRONLY | O_CLOEXEC);
    t->close = true;
    return t->fd < 0 ? cannot_write(t, "cannot open") : CTL_DONE;
}

static enum ctl_exit npy_write(const struct target *t, const void *bytes, size_t size)
{
    for (const char *p = bytes; size > 0;) {
        ssize_t n = write(t->fd, p, size);

        if (n < 0 && errno == EINTR && !ctl_interrupted())
            continue;
        if (ctl_interrupted())
            return ctl_error("interrupted: %s: nothing is left behind; run it again", t->shown);
        if (n < 0)
            return errno == EPIPE ? CTL_FAILED : cannot_write(t, "cannot write");
        p += n;
        size -= (size_t)n;
    }
    return CTL_DONE;
}

/* On a terminal, and only for those who have been waiting. */
static void show_progress(uint32_t done, uint32_t n, time_t *shown, time_t start)
{
    time_t now = time(NULL);

    if (now - start < 2 || now == *shown)
        return;
    *shown = now;
    fprintf(stderr, "\rfabricctl: %u of %u rows", done, n);
}

static enum ctl_exit write_rows(const struct pmixfab *fab, uint32_t n, const struct target *t)
{
    uint32_t block = n == 0 ? 1 : (uint32_t)(BLOCK_BYTES / sizeof(uint16_t)) / n;
    bool terminal = isatty(STDERR_FILENO) == 1;
    time_t start = time(NULL), shown = 0;
    enum ctl_exit status = CTL_DONE;
    uint16_t *rows;

    if (block == 0)
        block = 1;
    rows = malloc((size_t)block * n * sizeof *rows + 1);
    if (rows == NULL)
        return ctl_nomem();
    for (uint32_t first = 0; first < n && status == CTL_DONE; first += block) {
        uint32_t count = n - first < block ? n - first : block;

        for (uint32_t i = 0; i < count && status == CTL_DONE; i++)
            if (pmixfab_row(fab, first + i, rows + (size_t)i * n, n) != 0)
                status = ctl_error("no row %u: %s: the snapshot contradicts itself", first + i, t->shown);
#if __BYTE_ORDER == __BIG_ENDIAN
        for (size_t i = 0; i < (size_t)count * n; i++)
            rows[i] = htole16(rows[i]);
#endif
        if (status == CTL_DONE)
            status = npy_write(t, rows, (size_t)count * n * sizeof *rows);
        if (terminal)
            show_progress(first + count, n, &shown, start);
    }
    if (shown != 0)
        fputs("\r                                        \r", stderr);
    free(rows);
    return status;
}

/* Close first: some file systems say only then that the disk is full. */
static enum ctl_exit npy_close(struct target *t, enum ctl_exit status)
{
    if (t->close && t->fd >= 0 && close(t->fd) != 0 && status == CTL_DONE)
        status = cannot_write(t, "cannot write");
    if (status == CTL_DONE && t->temporary != NULL && rename(t->temporary, t->path) != 0)
        status = cannot_write(t, "cannot rename the finished file to");
    if (status != CTL_DONE && t->temporary != NULL)
        unlink(t->temporary);
    free(t->temporary);
    free(t->path);
    return status;
}

enum ctl_exit ctl_npy_write(const struct pmixfab *fab, const char *path)
{
    unsigned char header[CTL_NPY_HEADER_MAX];
    struct pmixfab_plane plane;
    struct target target;
    enum ctl_exit status;
    uint64_t size;
    size_t len;

    if (pmixfab_plane(fab, &plane) != 0)
        return ctl_error("no matrix: %s: the snapshot contradicts itself", path);
    len = ctl_npy_header(plane.n_devices, header);
    size = len + (uint64_t)plane.n_devices * plane.n_devices * sizeof(uint16_t);
    ctl_catch_interrupts();
    status = open_target(path, &target);
    /* a full disk is better known now than after gigabytes; where it cannot be known, writing will tell */
    if (status == CTL_DONE && target.temporary != NULL && fallocate(target.fd, 0, 0, (off_t)size) != 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        status = cannot_write(&target, "cannot write");
    if (status == CTL_DONE)
        status = npy_write(&target, header, len);
    if (status == CTL_DONE)
        status = write_rows(fab, plane.n_devices, &target);
    return npy_close(&target, status);
}
