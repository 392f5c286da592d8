/* patterns.c - the messages of a job: patterns of well-known operations, and files with a matrix. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricctl/simulate/simulate.h"
#include "topo/base/array.h"

static enum ctl_exit message_add(struct sim_messages *m, uint32_t step, uint32_t from, uint32_t to,
                                 uint64_t bytes)
{
    if (bytes == 0)
        return CTL_DONE;
    if (m->n == SIM_MESSAGES_MAX)
        return ctl_error("too many messages: the pattern has more than %d: give fewer ranks",
                         SIM_MESSAGES_MAX);
    if (!FAB_ARRAY_ROOM(&m->all, &m->room, m->n + UINT64_C(1)))
        return ctl_nomem();
    m->all[m->n++] = (struct sim_message){step, from, to, (uint32_t)bytes};
    return CTL_DONE;
}

/* Each rank sends to each other one: in step k to the rank k further. */
static enum ctl_exit pattern_alltoall(struct sim_messages *m, uint32_t n, uint64_t bytes)
{
    enum ctl_exit status = CTL_DONE;
    for (uint32_t step = 1; step < n; step++)
        for (uint32_t rank = 0; status == CTL_DONE && rank < n; rank++)
            status = message_add(m, step, rank, (uint32_t)(((uint64_t)rank + step) % n), bytes);
    return status;
}

static enum ctl_exit pattern_ring(struct sim_messages *m, uint32_t n, uint64_t bytes)
{
    enum ctl_exit status = CTL_DONE;
    for (uint32_t rank = 0; n > 1 && status == CTL_DONE && rank < n; rank++)
        status = message_add(m, 0, rank, (rank + 1) % n, bytes);
    return status;
}

/*
 * Allreduce of a vector of this many bytes in a ring: n - 1 steps reduce and n - 1 distribute. In each step a
 * rank sends one of n parts to the next rank.
 */
static enum ctl_exit pattern_allreduce(struct sim_messages *m, uint32_t n, uint64_t bytes)
{
    enum ctl_exit status = CTL_DONE;
    for (uint64_t step = 0; step < 2 * (uint64_t)(n - 1); step++)
        for (uint32_t rank = 0; status == CTL_DONE && rank < n; rank++) {
            const uint64_t part = (rank + 2 * (uint64_t)n - step) % n;
            status = message_add(m, (uint32_t)step, rank, (rank + 1) % n,
                                 bytes * (part + 1) / n - bytes * part / n);
        }
    return status;
}

/* Find the extents of a grid of n ranks that are nearest to each other, the largest one first. */
static void grid_extents(uint32_t n, uint32_t extent[static 3])
{
    uint64_t best = UINT64_MAX;
    for (uint32_t c = 1; (uint64_t)c * c * c <= n; c++)
        for (uint32_t b = c; n % c == 0 && (uint64_t)b * b <= n / c; b++) {
            const uint32_t a = n / c / b;
            const uint64_t sides = (uint64_t)a + b + c;
            if (n / c % b != 0 || sides > best)
                continue;
            best = sides;
            extent[0] = a;
            extent[1] = b;
            extent[2] = c;
        }
}

/* Each rank sends to its neighbours in a periodic grid of three dimensions. */
static enum ctl_exit pattern_halo3(struct sim_messages *m, uint32_t n, uint64_t bytes)
{
    uint32_t extent[3] = {1, 1, 1};
    enum ctl_exit status = CTL_DONE;
    grid_extents(n, extent);
    for (uint32_t rank = 0; rank < n; rank++)
        for (uint32_t dim = 0, stride = 1; dim < 3; stride *= extent[dim], dim++) {
            const uint32_t at = rank / stride % extent[dim];
            const uint32_t base = rank - at * stride;
            const uint32_t next = base + (at + 1) % extent[dim] * stride;
            const uint32_t before = base + (at + extent[dim] - 1) % extent[dim] * stride;
            if (status == CTL_DONE && next != rank)
                status = message_add(m, 0, rank, next, bytes);
            if (status == CTL_DONE && before != rank && before != next)
                status = message_add(m, 0, rank, before, bytes);
        }
    return status;
}

/* ---- a matrix ---- */

/* Read a number and the blanks after it. Return false if there is none, or more than `most`. */
static bool matrix_number(const char **text, uint64_t most, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(*text, &end, 10);
    if (**text < '0' || **text > '9' || errno != 0 || *number > most ||
        (*end != '\0' && *end != ' ' && *end != '\t'))
        return false;
    *text = end + strspn(end, " \t");
    return true;
}

static enum ctl_exit matrix_line(const char *path, uint32_t at, char *line, uint32_t ranks,
                                 struct sim_messages *m)
{
    const char *text = line;
    uint64_t from, to, bytes;
    line[strcspn(line, "#\r")] = '\0';
    text += strspn(text, " \t");
    if (*text == '\0')
        return CTL_DONE;
    if (!matrix_number(&text, UINT32_MAX, &from) || !matrix_number(&text, UINT32_MAX, &to) ||
        !matrix_number(&text, SIM_BYTES_MAX, &bytes) || *text != '\0')
        return ctl_error("%s: line %u: not FROM TO BYTES, with ranks from 0 and at most %d bytes: %.60s",
                         path, at, SIM_BYTES_MAX, line);
    if (from >= ranks || to >= ranks)
        return ctl_error("%s: line %u: rank %" PRIu64 ": the job has ranks 0 to %u: see -n", path, at,
                         from >= ranks ? from : to, ranks - 1);
    return message_add(m, 0, (uint32_t)from, (uint32_t)to, bytes);
}

static enum ctl_exit pattern_file(const char *path, uint32_t ranks, struct sim_messages *m)
{
    enum ctl_exit status = CTL_DONE;
    size_t size = 0;
    uint32_t at = 0;
    char *text = ctl_target_read(path, &size);
    if (text == NULL && access(path, F_OK) != 0)
        return ctl_usage("no such pattern, and no such file: --pattern %s: there are " SIM_PATTERNS, path);
    if (text == NULL)
        return ctl_error("cannot read %s: give a file that you may read", path);
    if (memchr(text, '\0', size) != NULL)
        status = ctl_error("%s: not a text: give lines FROM TO BYTES", path);
    else if (size > 0 && text[size - 1] != '\n')
        status = ctl_error("%s: cut: its last line has no end", path);
    for (char *line = text, *end; status == CTL_DONE && *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        status = matrix_line(path, ++at, line, ranks, m);
    }
    if (status == CTL_DONE && m->n == 0)
        status = ctl_error("%s: no message", path);
    free(text);
    return status;
}

enum ctl_exit sim_pattern(const char *pattern, uint32_t ranks, uint64_t bytes, struct sim_messages *messages)
{
    static const struct {
        const char *name;
        enum ctl_exit (*make)(struct sim_messages *m, uint32_t n, uint64_t bytes);
    } patterns[] = {{"alltoall", pattern_alltoall},
                    {"ring", pattern_ring},
                    {"halo3", pattern_halo3},
                    {"allreduce", pattern_allreduce}};
    *messages = (struct sim_messages){.n = 0};
    for (size_t i = 0; i < CTL_COUNT(patterns); i++)
        if (strcmp(patterns[i].name, pattern) == 0)
            return patterns[i].make(messages, ranks, bytes > 0 ? bytes : SIM_BYTES_DEFAULT);
    if (bytes > 0)
        return ctl_usage("one or the other: --bytes and a file, which has the bytes of each message");
    return pattern_file(pattern, ranks, messages);
}
