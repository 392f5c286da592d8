/*
 * npy.c - write a matrix without ever holding it.
 */
#include "fabricctl/export/npy.h"
#include "fabricctl/export/target.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_BYTES (4u << 20)

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

/* On a terminal, and only for those who have been waiting. */
static void show_progress(uint32_t done, uint32_t n, time_t *shown, time_t start)
{
    time_t now = time(NULL);

    if (now - start < 2 || now == *shown)
        return;
    *shown = now;
    fprintf(stderr, "\rfabricctl: %u of %u rows", done, n);
}

/* To the target, or to the stream. */
static enum ctl_exit npy_put(const struct ctl_target *t, FILE *out, const void *bytes, size_t size)
{
    if (out == NULL)
        return ctl_target_write(t, bytes, size);
    fwrite(bytes, 1, size, out);
    return CTL_DONE;
}

static enum ctl_exit write_rows(const struct pmixfab *fab, uint32_t n, const struct ctl_target *t, FILE *out)
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
                status = ctl_error("no row %u: the snapshot contradicts itself", first + i);
#if __BYTE_ORDER == __BIG_ENDIAN
        for (size_t i = 0; i < (size_t)count * n; i++)
            rows[i] = htole16(rows[i]);
#endif
        if (status == CTL_DONE)
            status = npy_put(t, out, rows, (size_t)count * n * sizeof *rows);
        if (terminal)
            show_progress(first + count, n, &shown, start);
    }
    if (shown != 0)
        fputs("\r                                        \r", stderr);
    free(rows);
    return status;
}

enum ctl_exit ctl_npy_write(const struct pmixfab *fab, const char *path)
{
    unsigned char header[CTL_NPY_HEADER_MAX];
    struct pmixfab_plane plane;
    struct ctl_target target;
    enum ctl_exit status;
    uint64_t size;
    size_t len;

    if (pmixfab_plane(fab, &plane) != 0)
        return ctl_error("no matrix: %s: the snapshot contradicts itself", path);
    len = ctl_npy_header(plane.n_devices, header);
    size = len + (uint64_t)plane.n_devices * plane.n_devices * sizeof(uint16_t);
    ctl_catch_interrupts();
    status = ctl_target_open(path, &target);
    /* a full disk is better known now than after gigabytes; where it cannot be known, writing will tell */
    if (status == CTL_DONE && target.temporary != NULL && fallocate(target.fd, 0, 0, (off_t)size) != 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        status = ctl_target_failed(&target, "cannot write");
    if (status == CTL_DONE)
        status = ctl_target_write(&target, header, len);
    if (status == CTL_DONE)
        status = write_rows(fab, plane.n_devices, &target, NULL);
    return ctl_target_close(&target, false, status);
}

enum ctl_exit ctl_npy_print(const struct pmixfab *fab, FILE *out)
{
    unsigned char header[CTL_NPY_HEADER_MAX];
    struct pmixfab_plane plane;

    if (pmixfab_plane(fab, &plane) != 0)
        return ctl_error("no matrix: the snapshot contradicts itself");
    const size_t len = ctl_npy_header(plane.n_devices, header);
    fwrite(header, 1, len, out);
    return write_rows(fab, plane.n_devices, NULL, out);
}
