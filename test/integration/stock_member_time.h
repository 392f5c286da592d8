/*
 * stock_member_time.h - what a stock_member measures of publishing and looking up. It stands in that program,
 * after what all its actions use.
 */
#ifndef TEST_STOCK_MEMBER_TIME_H
#define TEST_STOCK_MEMBER_TIME_H

#include <time.h>

#include "test/integration/stock_member.h"

static inline int compare_times(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static inline double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The value that is published as the key "NAMEi". */
static inline void load_published(pmix_info_t info[2], const char *name, size_t i, uint8_t persistence)
{
    char key[32];
    snprintf(key, sizeof(key), "%s%zu", name, i);
    PMIX_INFO_LOAD(&info[0], key, "value", PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_PERSISTENCE, &persistence, PMIX_PERSIST);
}

/* The library's own way to its server and back: a key that this does not have. */
static inline pmix_status_t ask_server(void)
{
    pmix_value_t *value = NULL;
    pmix_proc_t job;
    pmix_info_t now;
    PMIX_LOAD_PROCID(&job, self.nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&now, PMIX_IMMEDIATE, NULL, PMIX_BOOL);
    return PMIx_Get(&job, "no.such", &now, 1, &value) == PMIX_ERR_NOT_FOUND ? PMIX_SUCCESS : PMIX_ERROR;
}

static inline double took_us(double *start)
{
    const double since = *start;
    *start = now_us();
    return *start - since;
}

/* time=N[,PERSISTENCE]: publishes, lookups and bare questions in turns, each after the answer to the one
 * before. How many publishes and lookups a second, their median and 99th of 100 in microseconds; how many
 * questions */
static inline pmix_status_t do_time(struct action *a)
{
    static double took[200000];
    const size_t n = (size_t)atol(a->words[0]);
    double all = 0, asked = 0;
    pmix_status_t rc = PMIX_SUCCESS;
    for (size_t i = 0; rc == PMIX_SUCCESS && i < n && i < 100000; i++) {
        pmix_info_t info[2];
        pmix_pdata_t data;
        load_published(info, "time", i, persistence_of(word(a, 1, "proc")));
        PMIX_PDATA_CONSTRUCT(&data);
        PMIX_LOAD_KEY(data.key, info[0].key);
        double start = now_us();
        rc = PMIx_Publish(info, 2);
        all += took[2 * i] = took_us(&start);
        if (rc == PMIX_SUCCESS)
            rc = PMIx_Lookup(&data, 1, NULL, 0);
        all += took[2 * i + 1] = took_us(&start);
        if (rc == PMIX_SUCCESS)
            rc = ask_server();
        asked += took_us(&start);
        PMIX_INFO_DESTRUCT(&info[0]);
        PMIX_PDATA_DESTRUCT(&data);
    }
    qsort(took, 2 * n, sizeof(took[0]), compare_times);
    snprintf(a->said, sizeof(a->said), " %.0f %.1f %.1f %.0f", 2e6 * (double)n / all, took[n],
             took[2 * n * 99 / 100], 1e6 * (double)n / asked);
    return rc;
}

/* ---- several under way ---------------------------------------------------------------------------- */

static size_t under_way;
static pmix_status_t under_way_status;

/* Until fewer than these are. */
static inline void under_way_wait(size_t most)
{
    pthread_mutex_lock(&lock);
    while (under_way >= most)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static inline void under_way_add(size_t more, pmix_status_t status)
{
    pthread_mutex_lock(&lock);
    under_way += more;
    if (status != PMIX_SUCCESS)
        under_way_status = status;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static inline void on_published(pmix_status_t status, void *cbdata)
{
    (void)cbdata;
    under_way_add((size_t)-1, status);
}

static inline void on_looked_up(pmix_status_t status, pmix_pdata_t data[], size_t n, void *cbdata)
{
    const char *key = cbdata;
    if (status == PMIX_SUCCESS && (n != 1 || !PMIX_CHECK_KEY(&data[0], key)))
        status = PMIX_ERR_NOT_FOUND;
    under_way_add((size_t)-1, status);
}

/* rate=N,PERSISTENCE,MOST: publishes, then lookups of all that, so many under way at once; how many a second
 */
static inline pmix_status_t do_rate(struct action *a)
{
    const size_t n = (size_t)atol(a->words[0]), most = (size_t)atol(word(a, 2, "16"));
    pmix_info_t *info = calloc(2 * n, sizeof(*info));
    pmix_status_t rc = PMIX_SUCCESS;
    const double began = now_us();
    for (size_t i = 0; info != NULL && i < 2 * n && rc == PMIX_SUCCESS; i++) {
        pmix_info_t *one = &info[i < n ? 2 * i : 2 * (i - n)];
        under_way_wait(i == n ? 1 : most);
        under_way_add(1, PMIX_SUCCESS);
        if (i < n) {
            load_published(one, "rate", i, persistence_of(word(a, 1, "proc")));
            rc = PMIx_Publish_nb(one, 2, on_published, NULL);
        } else {
            rc = PMIx_Lookup_nb((char *[]){one->key, NULL}, NULL, 0, on_looked_up, one->key);
        }
        if (rc != PMIX_SUCCESS)
            under_way_add((size_t)-1, rc);
    }
    under_way_wait(1);
    snprintf(a->said, sizeof(a->said), " %.0f", 2e6 * (double)n / (now_us() - began));
    PMIX_INFO_FREE(info, 2 * n);
    return under_way_status;
}

#endif
