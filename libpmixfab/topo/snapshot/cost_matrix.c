/*
 * cost_matrix.c - expand the compact form: a row, and the whole matrix.
 *
 * Devices with the same edge and access cost have the same row, except for their own place and their host's.
 * The row of such a class is made once and then streamed to the rows of its devices. The row is made of runs.
 * A run is a set of adjacent devices of one class, which have one value.
 */
#include "topo/snapshot/cost_matrix.h"
#include "topo/base/scratch.h"
#include "topo/model/model.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- vectors and threads --------------------------------------------------------------------------------
 */

#define MOST_THREADS 64u

static atomic_int isa_limit = FAB_ISA_AVX512;

void fab_cost_limit_isa(enum fab_isa limit)
{
    atomic_store(&isa_limit, (int)limit);
}

enum fab_isa fab_cost_isa(void)
{
#if defined(__x86_64__)
    int limit = atomic_load(&isa_limit);
    if (limit >= FAB_ISA_AVX512 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return FAB_ISA_AVX512;
    if (limit >= FAB_ISA_AVX2 && __builtin_cpu_supports("avx2"))
        return FAB_ISA_AVX2;
#endif
    return FAB_ISA_ANY;
}

unsigned fab_cost_threads(unsigned asked, size_t tasks)
{
    unsigned n = asked;
    if (n == 0) {
        cpu_set_t set;
        n = sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
    }
    if (n > MOST_THREADS)
        n = MOST_THREADS;
    if (n > tasks)
        n = (unsigned)tasks;
    return n == 0 ? 1 : n;
}

struct part {
    void (*work)(void *job, unsigned i);
    void *job;
    pthread_t thread;
    unsigned i;
    bool started;
};

static void *cost_thread(void *arg)
{
    struct part *part = arg;
    part->work(part->job, part->i);
    return NULL;
}

void fab_cost_run(unsigned n, void (*work)(void *job, unsigned i), void *job)
{
    struct part parts[MOST_THREADS];
    for (unsigned i = 1; i < n && i < MOST_THREADS; i++) {
        parts[i] = (struct part){.work = work, .job = job, .i = i};
        parts[i].started = pthread_create(&parts[i].thread, NULL, cost_thread, &parts[i]) == 0;
    }
    work(job, 0);
    for (unsigned i = 1; i < n && i < MOST_THREADS; i++)
        if (parts[i].started)
            pthread_join(parts[i].thread, NULL);
}

/* ---- the matrix
 * -------------------------------------------------------------------------------------------- */

typedef uint16_t lanes __attribute__((vector_size(16)));
#define LANES 8
typedef uint16_t wide __attribute__((vector_size(64)));
#define WIDE 32

/* Outputs from this size on bypass the caches. */
#define STREAM_FROM (4u << 20)
#define CACHE_LINE  32u /* values */
/* Maximum number of rows of one task. */
#define TASK_ROWS 64

struct run {
    uint32_t start, class;
};

struct task {
    uint32_t class, first, n; /* rows[first .. first+n-1] */
};

struct job {
    struct fab_scratch scratch;
    const struct fab_cost_view *v;
    uint16_t *cells;
    uint32_t n_classes, n_runs, n_tasks;
    uint32_t *class_of;     /* per device */
    uint32_t *class_edge;   /* per class */
    uint16_t *class_access; /* per class */
    uint32_t *rows;         /* devices by class */
    struct run *runs;       /* one more at the end: the end of all devices */
    struct task *tasks;
    uint16_t *space; /* per thread, `stride` values: the classes' costs, then a row */
    size_t stride;
    bool identity; /* class c is edge c */
    bool stream;
    atomic_uint next_task;
};

static FAB_ALWAYS_INLINE uint16_t add_cost(uint32_t dist, uint32_t access)
{
    uint32_t sum = dist + access;
    return (uint16_t)(dist == FAB_COST_NO_PATH ? dist : sum > FAB_COST_MAX ? FAB_COST_MAX : sum);
}

void fab_cost_row(const struct fab_cost_view *v, uint32_t a, uint16_t *row)
{
    const uint16_t *dist = v->dist + (size_t)v->edge[a] * v->n_edges;
    uint32_t access = v->access[a], host = v->host[a];
    for (uint32_t j = 0; j < v->n_devices; j++)
        row[j] = add_cost(dist[v->edge[j]], access + v->access[j]);
    for (uint32_t j = a; j < v->n_devices && v->host[j] == host; j++)
        row[j] = fab_cost_inside(v, a, j);
    for (uint32_t j = a; j-- > 0 && v->host[j] == host;)
        row[j] = fab_cost_inside(v, a, j);
    row[a] = 0;
}

/*
 * Find the class of each device; classes are numbered in order of appearance. Classes of one edge are
 * chained.
 */
static int find_classes(struct job *job)
{
    const struct fab_cost_view *v = job->v;
    uint32_t *head, *chain;
    FAB_SCRATCH(&job->scratch, &head, v->n_edges);
    FAB_SCRATCH(&job->scratch, &chain, v->n_devices);
    if (job->scratch.failed)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t e = 0; e < v->n_edges; e++)
        head[e] = FAB_NONE;
    for (uint32_t i = 0; i < v->n_devices; i++) {
        uint32_t c = head[v->edge[i]];
        while (c != FAB_NONE && job->class_access[c] != v->access[i])
            c = chain[c];
        if (c == FAB_NONE) {
            c = job->n_classes++;
            job->class_edge[c] = v->edge[i];
            job->class_access[c] = v->access[i];
            chain[c] = head[v->edge[i]];
            head[v->edge[i]] = c;
        }
        job->class_of[i] = c;
        if (i == 0 || job->class_of[i - 1] != c)
            job->runs[job->n_runs++] = (struct run){i, c};
    }
    job->runs[job->n_runs] = (struct run){v->n_devices, 0};
    job->identity = job->n_classes == v->n_edges;
    for (uint32_t c = 0; c < job->n_classes && job->identity; c++)
        job->identity = job->class_edge[c] == c;
    return PMIXFAB_OK;
}

/* Sort devices by class (a counting sort) and divide them into tasks. */
static int make_tasks(struct job *job)
{
    uint32_t n = job->v->n_devices, *start;
    FAB_SCRATCH(&job->scratch, &start, job->n_classes);
    FAB_SCRATCH(&job->scratch, &job->tasks, n / TASK_ROWS + job->n_classes);
    if (job->scratch.failed)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        start[job->class_of[i] + 1]++;
    for (uint32_t c = 0; c < job->n_classes; c++) {
        for (uint32_t at = 0; at < start[c + 1]; at += TASK_ROWS) {
            uint32_t left = start[c + 1] - at;
            job->tasks[job->n_tasks++] = (struct task){c, start[c] + at, left < TASK_ROWS ? left : TASK_ROWS};
        }
        start[c + 1] += start[c];
    }
    for (uint32_t i = 0; i < n; i++)
        job->rows[start[job->class_of[i]]++] = i;
    return PMIXFAB_OK;
}

/* Run add_cost() for n classes at once: to[d] from dist[d] and own + access[d]. */
static FAB_ALWAYS_INLINE void add_costs(uint16_t *to, const uint16_t *dist, const uint16_t *access,
                                        uint16_t own, uint32_t n)
{
    uint32_t at = 0;
    for (; at + WIDE <= n; at += WIDE) {
        wide d, a;
        memcpy(&d, dist + at, sizeof(d));
        memcpy(&a, access + at, sizeof(a));
        a += own;
        a |= (wide)(a < own); /* saturate */
        wide sum = d + a;
        sum |= (wide)(sum < a);
        sum += (wide)(sum == UINT16_MAX); /* at most 65534 */
        sum |= (wide)(d == FAB_COST_NO_PATH);
        memcpy(to + at, &sum, sizeof(sum));
    }
    for (; at < n; at++)
        to[at] = add_cost(dist[at], (uint32_t)own + access[at]);
}

/* Compute the costs from a device of class c to one of each class. */
static FAB_ALWAYS_INLINE void class_costs(const struct job *job, uint32_t c, uint16_t *costs)
{
    const uint16_t *dist = job->v->dist + (size_t)job->class_edge[c] * job->v->n_edges;
    uint16_t own = job->class_access[c];
    if (job->identity) {
        add_costs(costs, dist, job->class_access, own, job->n_classes);
        return;
    }
    for (uint32_t d = 0; d < job->n_classes; d++)
        costs[d] = add_cost(dist[job->class_edge[d]], (uint32_t)own + job->class_access[d]);
}

/* Write the row of a class. Writes up to LANES - 1 values past its end. */
static FAB_ALWAYS_INLINE void class_row(const struct job *job, const uint16_t *costs, uint16_t *row)
{
    if (job->n_runs > job->v->n_devices / 3) {
        for (uint32_t j = 0; j < job->v->n_devices; j++)
            row[j] = costs[job->class_of[j]];
        return;
    }
    for (uint32_t r = 0; r < job->n_runs; r++) {
        lanes value = costs[job->runs[r].class] + (lanes){0};
        uint32_t end = job->runs[r + 1].start;
        for (uint32_t j = job->runs[r].start; j < end; j += LANES)
            memcpy(row + j, &value, sizeof(value));
    }
}

#if defined(__x86_64__)
/* Copy past the caches. The ends, which share a cache line with the adjacent rows, go through them. */
static void stream_copy(uint16_t *to, const uint16_t *from, size_t n)
{
    size_t head = (64 - ((uintptr_t)to & 63)) % 64 / sizeof(*to);
    if (head > n)
        head = n;
    memcpy(to, from, head * sizeof(*to));
    size_t at = head;
    for (; at + 32 <= n; at += 32) {
        __m128i a = _mm_loadu_si128((const __m128i *)(from + at));
        __m128i b = _mm_loadu_si128((const __m128i *)(from + at + 8));
        __m128i c = _mm_loadu_si128((const __m128i *)(from + at + 16));
        __m128i d = _mm_loadu_si128((const __m128i *)(from + at + 24));
        _mm_stream_si128((__m128i *)(to + at), a);
        _mm_stream_si128((__m128i *)(to + at + 8), b);
        _mm_stream_si128((__m128i *)(to + at + 16), c);
        _mm_stream_si128((__m128i *)(to + at + 24), d);
    }
    memcpy(to + at, from + at, (n - at) * sizeof(*to));
}
#endif

static void copy_row(const struct job *job, uint16_t *to, const uint16_t *from)
{
#if defined(__x86_64__)
    if (job->stream) {
        stream_copy(to, from, job->v->n_devices);
        return;
    }
#endif
    memcpy(to, from, job->v->n_devices * sizeof(*to));
}

/* Write row i: insert its own values into the class's row, copy, remove them again. */
static void write_row(const struct job *job, const uint16_t *costs, uint16_t *row, uint32_t i)
{
    const uint32_t *host = job->v->host;
    uint32_t first = i, end = i + 1;
    while (first > 0 && host[first - 1] == host[i])
        first--;
    while (end < job->v->n_devices && host[end] == host[i])
        end++;
    for (uint32_t j = first; j < end; j++)
        row[j] = fab_cost_inside(job->v, i, j);
    row[i] = 0;
    copy_row(job, job->cells + (size_t)i * job->v->n_devices, row);
    for (uint32_t j = first; j < end; j++)
        row[j] = costs[job->class_of[j]];
}

static FAB_ALWAYS_INLINE void matrix_job_thread(struct job *job, unsigned thread)
{
    uint16_t *costs = job->space + thread * job->stride, *row = costs + job->n_classes;
    for (uint32_t t; (t = atomic_fetch_add(&job->next_task, 1)) < job->n_tasks;) {
        const struct task *task = &job->tasks[t];
        class_costs(job, task->class, costs);
        class_row(job, costs, row);
        for (uint32_t r = 0; r < task->n; r++)
            write_row(job, costs, row, job->rows[task->first + r]);
    }
#if defined(__x86_64__)
    _mm_sfence(); /* orders the streamed stores before later ones */
#endif
}

static void work_any(void *job, unsigned thread)
{
    matrix_job_thread(job, thread);
}

#if defined(__x86_64__)
FAB_TARGET_AVX2 static void work_avx2(void *job, unsigned thread)
{
    matrix_job_thread(job, thread);
}

FAB_TARGET_AVX512 static void work_avx512(void *job, unsigned thread)
{
    matrix_job_thread(job, thread);
}
#endif

static void run_tasks(struct job *job, unsigned threads)
{
#if defined(__x86_64__)
    enum fab_isa isa = fab_cost_isa();
    if (isa != FAB_ISA_ANY) {
        fab_cost_run(threads, isa == FAB_ISA_AVX512 ? work_avx512 : work_avx2, job);
        return;
    }
#endif
    fab_cost_run(threads, work_any, job);
}

int fab_cost_matrix(const struct fab_cost_view *v, uint16_t *cells, unsigned threads)
{
    if (v == NULL || (cells == NULL && v->n_devices > 0))
        return PMIXFAB_ERR_INVAL;
    size_t n = v->n_devices;
    if (n == 0)
        return PMIXFAB_OK;
    struct job job = {.v = v, .cells = cells, .stream = n * n * sizeof(*cells) >= STREAM_FROM};
    FAB_SCRATCH(&job.scratch, &job.class_of, n);
    FAB_SCRATCH(&job.scratch, &job.class_edge, n);
    FAB_SCRATCH(&job.scratch, &job.class_access, n);
    FAB_SCRATCH(&job.scratch, &job.rows, n);
    FAB_SCRATCH(&job.scratch, &job.runs, n + 1);
    int rc = job.scratch.failed ? PMIXFAB_ERR_NOMEM : find_classes(&job) ?: make_tasks(&job);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    unsigned n_threads = fab_cost_threads(threads, job.stream ? job.n_tasks : 1);
    job.stride = (job.n_classes + n + LANES + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    if (FAB_SCRATCH(&job.scratch, &job.space, n_threads * job.stride) != NULL)
        run_tasks(&job, n_threads);
    else
        rc = PMIXFAB_ERR_NOMEM;
cleanup:
    fab_scratch_free(&job.scratch);
    return rc;
}
