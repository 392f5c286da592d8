/* matrix.c - all costs of a plane: for people, or as a NumPy file. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/export/export.h"
#include "fabricctl/show/show.h"

/* ---- write a matrix without holding all of it in memory ---- */

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

/* Show progress on a terminal, and only after a while. */
static void show_progress(uint32_t done, uint32_t n, time_t *shown, time_t start)
{
    time_t now = time(NULL);
    if (now - start < 2 || now == *shown)
        return;
    *shown = now;
    fprintf(stderr, "\rfabricctl: %u of %u rows", done, n);
}

/* Write to the target, or to the stream. */
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

/* Write the plane's whole matrix to `path` ("-": standard output), some rows at a time. */
static enum ctl_exit npy_write(const struct pmixfab *fab, const char *path)
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
    /* reserve the space: a full disk is better reported now than after gigabytes. If the file system
     * cannot reserve, the write reports it */
    if (status == CTL_DONE && target.temporary != NULL && fallocate(target.fd, 0, 0, (off_t)size) != 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        status = ctl_target_failed(&target, "cannot write");
    if (status == CTL_DONE)
        status = ctl_target_write(&target, header, len);
    if (status == CTL_DONE)
        status = write_rows(fab, plane.n_devices, &target, NULL);
    return ctl_target_close(&target, false, status);
}

/* As above, to a stream; the caller checks it for errors. */
static enum ctl_exit npy_print(const struct pmixfab *fab, FILE *out)
{
    unsigned char header[CTL_NPY_HEADER_MAX];
    struct pmixfab_plane plane;
    if (pmixfab_plane(fab, &plane) != 0)
        return ctl_error("no matrix: the snapshot contradicts itself");
    const size_t len = ctl_npy_header(plane.n_devices, header);
    fwrite(header, 1, len, out);
    return write_rows(fab, plane.n_devices, NULL, out);
}

/* ---- all costs of a plane: for people, or as a NumPy file ---- */

#define READABLE 2000 /* devices; larger matrices are for programs, which read a file */

/* Rows one after the other, into one buffer. */
struct rows {
    const struct pmixfab *fab;
    const struct pmixfab_plane *plane;
    FILE *out;
    uint16_t *row;
};

static bool label_of(const struct rows *r, uint32_t index, char label[static CTL_LABEL_SIZE])
{
    struct pmixfab_device device;
    if (pmixfab_device(r->fab, index, &device) != 0)
        return false;
    ctl_device_label(&device, true, label, CTL_LABEL_SIZE);
    ctl_clean(label);
    return true;
}

/* Write the rows in columns for people, with a legend of the numbers; or as CSV, by name. */
static bool write_lines(const struct rows *r, bool csv)
{
    uint32_t n = r->plane->n_devices;
    char label[CTL_LABEL_SIZE];
    int width = 0;
    if (csv)
        fputs("device", r->out);
    for (uint32_t i = 0; i < n; i++) {
        if (!label_of(r, i, label))
            return false;
        width = (int)strlen(label) > width ? (int)strlen(label) : width;
        if (csv) {
            putc(',', r->out);
            ctl_csv_field(r->out, label);
        }
    }
    if (csv)
        putc('\n', r->out);
    for (uint32_t i = 0; i < n; i++) {
        if (!label_of(r, i, label) || pmixfab_row(r->fab, i, r->row, n) != 0)
            return false;
        if (csv)
            ctl_csv_field(r->out, label);
        else
            fprintf(r->out, "%5u %-*s", i, width, label);
        for (uint32_t j = 0; j < n; j++)
            if (r->row[j] == PMIXFAB_NO_PATH)
                fputs(csv ? "," : "     -", r->out);
            else
                fprintf(r->out, csv ? ",%u" : " %5u", r->row[j]);
        putc('\n', r->out);
    }
    return true;
}

static json_t *row_json(const struct rows *r, uint32_t i)
{
    uint32_t n = r->plane->n_devices;
    json_t *array = pmixfab_row(r->fab, i, r->row, n) == 0 ? json_array() : NULL;
    for (uint32_t j = 0; array != NULL && j < n; j++)
        json_array_append_new(array, r->row[j] == PMIXFAB_NO_PATH ? json_null() : json_integer(r->row[j]));
    return array;
}

/* Write one value after the other, with the JSON between them. Return false if there is no value. */
static bool matrix_put_value(json_t *value, uint32_t index, const char *between)
{
    bool good = value != NULL;
    if (index > 0)
        fputs(between, stdout);
    good = good && (json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY) == 0 || ferror(stdout));
    json_decref(value);
    return good;
}

/* Write the object in parts: four million numbers as JSON values at once would take 100 MB. */
static bool write_json(const struct rows *r)
{
    uint32_t n = r->plane->n_devices;
    char label[CTL_LABEL_SIZE];
    bool good;
    fputs("{\"plane\":", stdout);
    good = matrix_put_value(ctl_json_text(r->plane->name), 0, "");
    printf(",\"generation\":%llu,\n\"devices\":[", (unsigned long long)r->plane->generation);
    for (uint32_t i = 0; good && i < n; i++)
        good = label_of(r, i, label) && matrix_put_value(json_string(label), i, ",");
    fputs("],\n\"costs\":[\n", stdout);
    for (uint32_t i = 0; good && i < n; i++)
        good = matrix_put_value(row_json(r, i), i, ",\n");
    fputs("\n]}\n", stdout);
    return good;
}

static enum ctl_exit matrix_show(const struct ctl *ctl, const struct pmixfab *fab)
{
    struct pmixfab_plane plane;
    struct rows rows = {.fab = fab, .plane = &plane, .out = stdout};
    bool good;
    if (pmixfab_plane(fab, &plane) != 0)
        return ctl_error("no matrix: plane %s: its snapshot contradicts itself", ctl->plane);
    if (plane.n_devices > READABLE)
        return ctl_error("too large to show: plane %s has %u devices: write it to a file with -o FILE.npy",
                         plane.name, plane.n_devices);
    rows.row = malloc((plane.n_devices + (size_t)1) * sizeof *rows.row);
    if (rows.row == NULL)
        return ctl_nomem();
    good = ctl->format == CTL_JSON ? write_json(&rows) : write_lines(&rows, ctl->format == CTL_CSV);
    free(rows.row);
    return good
               ? CTL_DONE
               : ctl_error(
                     "the answer is incomplete: plane %s: its snapshot contradicts itself, or memory ran out",
                     plane.name);
}

enum ctl_exit ctl_matrix(const struct ctl *ctl)
{
    struct ctl_view view;
    enum ctl_exit status;
    if (ctl->output != NULL && ctl->output[0] == '-' && ctl->output[1] == '\0' && isatty(STDOUT_FILENO) == 1)
        return ctl_usage("cannot write binary data to standard output: it is a terminal: give -o FILE");
    status = ctl_view_one(ctl, &view);
    if (status != CTL_DONE)
        return status;
    status = ctl->output != NULL ? npy_write(view.planes[0], ctl->output) : matrix_show(ctl, view.planes[0]);
    ctl_view_close(&view);
    return status;
}

#define EXPORT_MOST 16384 /* devices; an export is made in memory, where their matrix takes 512 MB */

static enum ctl_exit export_too_large(const struct pmixfab_plane *plane)
{
    return ctl_error(
        "too large to export: plane %s has %u devices: write it with fabricctl matrix -o FILE.npy",
        plane->name, plane->n_devices);
}

enum ctl_exit ctl_export_csv(struct ctl_export *x)
{
    struct pmixfab_plane plane;
    struct rows rows = {.fab = x->view->planes[0], .plane = &plane, .out = x->out};
    bool good = pmixfab_plane(rows.fab, &plane) == 0;
    if (good && plane.n_devices > EXPORT_MOST)
        return export_too_large(&plane);
    rows.row = good ? malloc((plane.n_devices + (size_t)1) * sizeof *rows.row) : NULL;
    good = rows.row != NULL && write_lines(&rows, true);
    free(rows.row);
    return good ? CTL_DONE : ctl_error("no matrix: its snapshot contradicts itself, or memory ran out");
}

enum ctl_exit ctl_export_npy(struct ctl_export *x)
{
    struct pmixfab_plane plane;
    if (pmixfab_plane(x->view->planes[0], &plane) == 0 && plane.n_devices > EXPORT_MOST)
        return export_too_large(&plane);
    if (x->ctl->output == NULL && isatty(STDOUT_FILENO) == 1)
        return ctl_usage("cannot write binary data to standard output: it is a terminal: give -o FILE");
    return npy_print(x->view->planes[0], x->out);
}
