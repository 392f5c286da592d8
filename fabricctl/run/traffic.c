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
                                  : run_why(why, PMIXFAB_ERR_SYNTAX, "not a grid: --grid %.100s", text);
    for (uint32_t d = 0; d < out->n_dims; d++)
        points *= out->dims[d];
    if (rc == PMIXFAB_OK && points != ranks)
        rc = run_why(why, PMIXFAB_ERR_RANGE, "--grid %.100s has %.0f points, but the job has %u ranks", text,
                     points, ranks);
    for (uint32_t r = 0; rc == PMIXFAB_OK && r < ranks; r++)
        for (uint32_t d = out->n_dims, stride = 1; d-- > 0 && rc == PMIXFAB_OK; stride *= out->dims[d])
            if (r / stride % out->dims[d] + 1 < out->dims[d] && !add_message(&m, r, r + stride, 1))
                rc = PMIXFAB_ERR_NOMEM;
    if (rc == PMIXFAB_OK)
        rc = traffic_of(&m, ranks, out);
    free(m.list);
    if (rc == PMIXFAB_ERR_NOMEM)
        run_why(why, rc, "out of memory");
    return rc;
}

/* ---- a file ---- */

/* Read a line "FROM TO BYTES". Return false if it is none, or if `ranks` is not above its ranks. */
static bool read_line(char *line, uint32_t ranks, struct message *out)
{
    char *end;
    unsigned long ends[2];
    for (int i = 0; i < 2; i++, line = end) {
        line += strspn(line, " \t");
        ends[i] = strtoul(line, &end, 10);
        if (!isdigit((unsigned char)*line) || (*end != ' ' && *end != '\t') || ends[i] >= ranks)
            return false;
    }
    *out = (struct message){(uint32_t)ends[0], (uint32_t)ends[1], strtod(line, &end)};
    return end != line && end[strspn(end, " \t")] == '\0' && isfinite(out->bytes) && out->bytes >= 0;
}

static int read_lines(const char *path, char *text, uint32_t ranks, struct messages *m,
                      char why[static RUN_WHY])
{
    struct message message;
    char *line;
    for (unsigned number = 1; (line = strsep(&text, "\n")) != NULL; number++) {
        line[strcspn(line, "#\r")] = '\0';
        if (line[strspn(line, " \t")] == '\0')
            continue;
        if (!read_line(line, ranks, &message))
            return run_why(why, PMIXFAB_ERR_SYNTAX,
                           "--matrix %.300s line %u: not \"FROM TO BYTES\" with ranks below %u", path, number,
                           ranks);
        if (!add_message(m, message.from, message.to, message.bytes))
            return PMIXFAB_ERR_NOMEM;
    }
    return m->n > 0
               ? PMIXFAB_OK
               : run_why(why, PMIXFAB_ERR_SYNTAX, "--matrix %.300s: no communication between ranks", path);
}

int run_traffic_read(const char *path, uint32_t ranks, struct run_traffic *out, char why[static RUN_WHY])
{
    struct messages m = {0};
    size_t size = 0;
    char *text = ctl_target_read(path, &size);
    int rc;
    *out = (struct run_traffic){0};
    if (text == NULL)
        rc = run_why(why, PMIXFAB_ERR_IO, "cannot read --matrix %.300s: %s", path, strerror(errno));
    else if (size > 0 && (strlen(text) != size || text[size - 1] != '\n'))
        rc = run_why(why, PMIXFAB_ERR_TRUNCATED, "--matrix %.300s: cut off, or not a text", path);
    else
        rc = read_lines(path, text, ranks, &m, why);
    if (rc == PMIXFAB_OK)
        rc = traffic_of(&m, ranks, out);
    if (rc == PMIXFAB_ERR_NOMEM)
        run_why(why, rc, "out of memory");
    free(m.list);
    free(text);
    return rc;
}

void run_traffic_free(struct run_traffic *traffic)
{
    free(traffic->first);
    free(traffic->to);
    free(traffic->bytes);
    *traffic = (struct run_traffic){0};
}
