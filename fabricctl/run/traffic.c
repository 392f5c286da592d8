/* traffic.c - the communication between the ranks of a job: a Cartesian grid, or a file with a matrix. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/run/run.h"

/* One message: the form in which traffic is collected. */
struct message {
    uint32_t from, to;
    double bytes;
};

struct messages {
    struct message *list;
    size_t n, room;
};

static bool add_message(struct messages *m, uint32_t from, uint32_t to, double bytes)
{
    if (from == to || bytes == 0) /* a rank is always near itself */
        return true;
    if (m->n == m->room) {
        const size_t room = m->room * 2 + 1024;
        struct message *list = realloc(m->list, room * sizeof *list);
        if (list == NULL)
            return false;
        m->list = list;
        m->room = room;
    }
    m->list[m->n++] = (struct message){from, to, bytes};
    return true;
}

/* Sort the messages by rank, each at both of its ranks. */
static int traffic_of(const struct messages *m, uint32_t ranks, struct run_traffic *out)
{
    uint32_t *next = calloc(ranks + (size_t)2, sizeof *next);
    out->n = ranks;
    out->first = calloc(ranks + (size_t)1, sizeof *out->first);
    out->to = malloc((2 * m->n + 1) * sizeof *out->to);
    out->bytes = malloc((2 * m->n + 1) * sizeof *out->bytes);
    if (next == NULL || out->first == NULL || out->to == NULL || out->bytes == NULL ||
        m->n > UINT32_MAX / 2) {
        free(next);
        return PMIXFAB_ERR_NOMEM;
    }
    for (size_t i = 0; i < m->n; i++) {
        next[m->list[i].from + 1]++;
        next[m->list[i].to + 1]++;
    }
    for (uint32_t r = 0; r < ranks; r++)
        out->first[r + 1] = next[r + 1] += next[r];
    for (size_t i = 0; i < m->n; i++) {
        const struct message *at = &m->list[i];
        const uint32_t a = next[at->from]++, b = next[at->to]++;
        out->to[a] = at->to;
        out->to[b] = at->from;
        out->bytes[a] = out->bytes[b] = at->bytes;
    }
    free(next);
    return PMIXFAB_OK;
}

static int traffic_fail(int code, char why[static RUN_WHY], const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int traffic_fail(int code, char why[static RUN_WHY], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, RUN_WHY, fmt, args);
    va_end(args);
    return code;
}

/* ---- a grid ---- */

/* Return whether the text has the form of a grid, and fill in its dimensions. */
static bool read_dims(const char *text, struct run_traffic *out)
{
    for (const char *at = text;; at++) {
        char *end;
        const unsigned long size = strtoul(at, &end, 10);
        if (!isdigit((unsigned char)*at) || size == 0 || size > 100000000 || out->n_dims == RUN_DIMS)
            return false;
        out->dims[out->n_dims++] = (uint32_t)size;
        at = end;
        if (*at != 'x')
            return *at == '\0';
    }
}

bool run_is_grid(const char *text)
{
    struct run_traffic traffic = {0};
    return read_dims(text, &traffic);
}

int run_traffic_grid(const char *text, uint32_t ranks, struct run_traffic *out, char why[static RUN_WHY])
{
    struct messages m = {0};
    double points = 1;
    *out = (struct run_traffic){0};
    int rc = read_dims(text, out) ? PMIXFAB_OK
                                  : traffic_fail(PMIXFAB_ERR_SYNTAX, why, "not a grid: --grid %.100s", text);
    for (uint32_t d = 0; d < out->n_dims; d++)
        points *= out->dims[d];
    if (rc == PMIXFAB_OK && points != ranks)
        rc = traffic_fail(PMIXFAB_ERR_RANGE, why, "--grid %.100s has %.0f points, but the job has %u ranks",
                          text, points, ranks);
    for (uint32_t r = 0; rc == PMIXFAB_OK && r < ranks; r++)
        for (uint32_t d = out->n_dims, stride = 1; d-- > 0 && rc == PMIXFAB_OK; stride *= out->dims[d])
            if (r / stride % out->dims[d] + 1 < out->dims[d] && !add_message(&m, r, r + stride, 1))
                rc = PMIXFAB_ERR_NOMEM;
    if (rc == PMIXFAB_OK)
        rc = traffic_of(&m, ranks, out);
    free(m.list);
    if (rc == PMIXFAB_ERR_NOMEM)
        traffic_fail(rc, why, "out of memory");
    return rc;
}

/* ---- a file ---- */

struct matrix_file {
    const char *path;
    char *text; /* a 0 follows */
    size_t size;
    uint32_t ranks;
    struct messages m;
    char *why;
};

static int matrix_fail(const struct matrix_file *f, const char *what)
{
    return traffic_fail(PMIXFAB_ERR_SYNTAX, f->why, "--matrix %.300s: %s", f->path, what);
}

static int other_size(const struct matrix_file *f, const char *have, unsigned long other)
{
    return traffic_fail(PMIXFAB_ERR_RANGE, f->why, "--matrix %.300s: %s %lu, but the job has %u ranks",
                        f->path, have, other, f->ranks);
}

/* Read a number of little endian: 'f', 'i' or 'u' with 1, 2, 4 or 8 bytes. */
static double npy_number(char kind, unsigned size, const unsigned char *at)
{
    uint64_t bits = 0;
    float small;
    double number;
    for (unsigned i = 0; i < size; i++)
        bits |= (uint64_t)at[i] << (8 * i);
    if (kind == 'f' && size == 4) {
        const uint32_t half = (uint32_t)bits;
        memcpy(&small, &half, sizeof small);
        return (double)small;
    }
    if (kind == 'f') {
        memcpy(&number, &bits, sizeof number);
        return number;
    }
    if (kind == 'i' && (bits >> (8 * size - 1)) != 0)
        return -1;
    return (double)bits;
}

/* Read the header of an array. *cells: offset of the first number. */
static int npy_header(const struct matrix_file *f, char *kind, unsigned *size, size_t *cells)
{
    const unsigned char *bytes = (const unsigned char *)f->text;
    const bool longer = f->size > 12 && bytes[6] > 1;
    const size_t begin = longer ? 12 : 10,
                 len = f->size < 12 ? 0
                                    : bytes[8] + 256u * bytes[9] +
                                          (longer ? 65536u * bytes[10] + 16777216u * (size_t)bytes[11] : 0);
    char header[1024], order;
    const char *descr, *fortran, *shape;
    unsigned long rows, columns;
    if (len == 0 || len >= sizeof header || begin + len > f->size)
        return matrix_fail(f, "the header is cut off, or too long");
    memcpy(header, f->text + begin, len);
    header[len] = '\0';
    descr = strstr(header, "'descr':");
    fortran = strstr(header, "'fortran_order':");
    shape = strstr(header, "'shape':");
    if (descr == NULL || fortran == NULL || shape == NULL ||
        sscanf(descr, "'descr': '%c%c%1u'", &order, kind, size) != 3 || strchr("<|", order) == NULL ||
        strchr("fiu", *kind) == NULL || strchr("\1\2\4\10", (int)*size) == NULL || *size == 0 ||
        (*kind == 'f' && *size < 4))
        return matrix_fail(f, "not an array of numbers: give float64 or an integer type, little endian");
    if (sscanf(shape, "'shape': (%lu, %lu)", &rows, &columns) != 2 || rows != columns)
        return matrix_fail(f, "not a square matrix");
    if (rows != f->ranks)
        return other_size(f, "the number of rows is", rows);
    *cells = begin + len;
    return f->size - *cells < (size_t)rows * rows * *size ? matrix_fail(f, "the file is cut off")
                                                          : PMIXFAB_OK;
}

static int read_npy(struct matrix_file *f)
{
    char kind = '\0';
    unsigned size = 0;
    size_t cells = 0;
    int rc = npy_header(f, &kind, &size, &cells);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < f->ranks; i++)
        for (uint32_t k = 0; rc == PMIXFAB_OK && k < f->ranks; k++) {
            const size_t cell = (size_t)i * f->ranks + k;
            const double bytes = npy_number(kind, size, (const unsigned char *)f->text + cells + cell * size);
            if (!isfinite(bytes) || bytes < 0)
                rc = matrix_fail(f, "a number is negative or infinite");
            else if (!add_message(&f->m, i, k, bytes))
                rc = PMIXFAB_ERR_NOMEM;
        }
    return rc;
}

/* Read one line; *at moves behind it. */
static int read_line(struct matrix_file *f, char **at, unsigned number)
{
    char *line = strsep(at, "\n"), *end;
    unsigned long ends[2];
    double bytes;
    line[strcspn(line, "#\r")] = '\0';
    if (line[strspn(line, " \t")] == '\0')
        return PMIXFAB_OK;
    for (int i = 0; i < 2; i++, line = end) {
        line += strspn(line, " \t");
        ends[i] = strtoul(line, &end, 10);
        if (!isdigit((unsigned char)*line) || (*end != ' ' && *end != '\t'))
            return traffic_fail(PMIXFAB_ERR_SYNTAX, f->why, "--matrix %.300s line %u: not \"FROM TO BYTES\"",
                                f->path, number);
        if (ends[i] >= f->ranks)
            return other_size(f, "there is a rank", ends[i]);
    }
    bytes = strtod(line, &end);
    if (end == line || end[strspn(end, " \t")] != '\0' || !isfinite(bytes) || bytes < 0)
        return traffic_fail(PMIXFAB_ERR_SYNTAX, f->why, "--matrix %.300s line %u: not \"FROM TO BYTES\"",
                            f->path, number);
    return add_message(&f->m, (uint32_t)ends[0], (uint32_t)ends[1], bytes) ? PMIXFAB_OK : PMIXFAB_ERR_NOMEM;
}

static int read_lines(struct matrix_file *f)
{
    char *at = f->text;
    int rc = PMIXFAB_OK;
    if (strlen(f->text) != f->size)
        return matrix_fail(f, "neither an array of NumPy (.npy) nor text");
    if (f->size > 0 && f->text[f->size - 1] != '\n')
        return matrix_fail(f, "the last line is cut off: it has no end of line");
    for (unsigned number = 1; rc == PMIXFAB_OK && at != NULL; number++)
        rc = read_line(f, &at, number);
    return rc == PMIXFAB_OK && f->m.n == 0 ? matrix_fail(f, "no communication between ranks") : rc;
}

int run_traffic_read(const char *path, uint32_t ranks, struct run_traffic *out, char why[static RUN_WHY])
{
    struct matrix_file f = {.path = path, .ranks = ranks, .why = why};
    int rc;
    *out = (struct run_traffic){0};
    f.text = ctl_target_read(path, &f.size);
    if (f.text == NULL)
        return traffic_fail(PMIXFAB_ERR_IO, why, "cannot read --matrix %.300s: %s", path, strerror(errno));
    rc = f.size > 6 && memcmp(f.text, "\x93NUMPY", 6) == 0 ? read_npy(&f) : read_lines(&f);
    if (rc == PMIXFAB_OK)
        rc = traffic_of(&f.m, ranks, out);
    if (rc == PMIXFAB_ERR_NOMEM)
        traffic_fail(rc, why, "out of memory");
    free(f.m.list);
    free(f.text);
    return rc;
}

void run_traffic_free(struct run_traffic *traffic)
{
    free(traffic->first);
    free(traffic->to);
    free(traffic->bytes);
    *traffic = (struct run_traffic){0};
}
