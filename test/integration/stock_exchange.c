/*
 * stock_exchange.c - how long a process of a job takes until it has everybody's coordinates: as it was told
 * them at its start, and as processes tell them to each other. Knows only the stock PMIx library.
 *
 *   stock_exchange FOLDER
 *
 * Writes FOLDER/RANK, a line of microseconds: from its first line (behind PMIx_Init) until it had everybody's
 * in one value; from there until it had the coordinates of the last rank, which a launcher puts on the last
 * node; until it had everybody's, each by a Get; from then on the exchange (Put, Commit, Fence with data, Get
 * of all), which begins when each process is there; the three ways again, all processes beginning at once
 * behind a fence; and how many bytes left this process for what it was told.
 */
#include <glob.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "test/integration/stock_status.h"

#define WHOLE "fabricd.coordinates"

static pmix_proc_t self, everybody;

static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Bytes that this process has sent on connections that it has now. */
static unsigned long long sent(void)
{
    unsigned long long sum = 0;
    glob_t open_files;
    if (glob("/proc/self/fd/*", 0, NULL, &open_files) != 0)
        return 0;
    for (size_t i = 0; i < open_files.gl_pathc; i++) {
        struct tcp_info info = {0};
        socklen_t size = sizeof(info);
        int fd = atoi(strrchr(open_files.gl_pathv[i], '/') + 1);
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
            sum += info.tcpi_bytes_sent;
    }
    globfree(&open_files);
    return sum;
}

static void fail(const char *what, pmix_status_t rc)
{
    fprintf(stderr, "rank %u: %s: %s\n", self.rank, what, stock_status(rc));
    exit(1);
}

static void get(const char *key, pmix_rank_t rank)
{
    pmix_proc_t proc;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&proc, self.nspace, rank);
    pmix_status_t rc = PMIx_Get(&proc, key, NULL, 0, &value);
    if (rc != PMIX_SUCCESS)
        fail(key, rc);
    PMIX_VALUE_RELEASE(value);
}

static void meet(bool with_data)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &with_data, PMIX_BOOL);
    pmix_status_t rc = PMIx_Fence(&everybody, 1, &info, 1);
    if (rc != PMIX_SUCCESS)
        fail("PMIx_Fence", rc);
}

static void get_all(const char *key, uint32_t n_ranks)
{
    for (uint32_t rank = 0; rank < n_ranks; rank++)
        get(key, rank);
}

/* What a program does that has its own coordinates only. */
static void exchange(const char *key, uint32_t n_ranks)
{
    uint32_t numbers[3] = {0, self.rank, 0};
    pmix_coord_t own = {.view = PMIX_COORD_LOGICAL_VIEW, .coord = numbers, .dims = 3};
    pmix_value_t value = {.type = PMIX_COORD, .data.coord = &own};
    pmix_status_t rc = PMIx_Put(PMIX_GLOBAL, key, &value);
    if (rc == PMIX_SUCCESS)
        rc = PMIx_Commit();
    if (rc != PMIX_SUCCESS)
        fail("PMIx_Put", rc);
    meet(true);
    get_all(key, n_ranks);
}

static uint32_t job_size(void)
{
    pmix_value_t *value = NULL;
    pmix_status_t rc = PMIx_Get(&everybody, PMIX_JOB_SIZE, NULL, 0, &value);
    if (rc != PMIX_SUCCESS)
        fail("PMIX_JOB_SIZE", rc);
    uint32_t n = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return n;
}

/* Microseconds since it was called last. */
static double lap(void)
{
    static double last;
    double before = last;
    last = microseconds();
    return last - before;
}

int main(int argc, char **argv)
{
    char path[4096];
    double took[7];
    pmix_status_t rc = PMIx_Init(&self, NULL, 0);
    if (argc != 2 || rc != PMIX_SUCCESS)
        fail("PMIx_Init", rc);
    PMIX_LOAD_PROCID(&everybody, self.nspace, PMIX_RANK_WILDCARD);
    uint32_t n_ranks = job_size();

    unsigned long long before = sent();
    lap();
    get(WHOLE, PMIX_RANK_WILDCARD);
    took[0] = lap();
    get(PMIX_FABRIC_COORDINATES, n_ranks - 1);
    took[1] = lap();
    get_all(PMIX_FABRIC_COORDINATES, n_ranks);
    took[2] = lap();
    unsigned long long bytes = sent() - before;
    lap();
    exchange("exchange.first", n_ranks);
    took[3] = lap();
    meet(false);
    lap();
    get(WHOLE, PMIX_RANK_WILDCARD);
    took[4] = lap();
    get_all(PMIX_FABRIC_COORDINATES, n_ranks);
    took[5] = lap();
    meet(false);
    lap();
    exchange("exchange.again", n_ranks);
    took[6] = lap();

    snprintf(path, sizeof(path), "%s/%u", argv[1], self.rank);
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        perror(path);
        return 1;
    }
    for (size_t i = 0; i < sizeof(took) / sizeof(took[0]); i++)
        fprintf(out, "%.1f ", took[i]);
    fprintf(out, "%llu\n", bytes);
    fclose(out);
    return PMIx_Finalize(NULL, 0) == PMIX_SUCCESS ? 0 : 1;
}
