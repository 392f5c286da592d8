#include "topo/snapshot/cost_threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

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
