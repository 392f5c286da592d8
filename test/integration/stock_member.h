/*
 * stock_member.h - what the actions of a stock_member stand on: what one was given, whom its words name, what
 * it says, and the answers that come on the library's thread.
 */
#ifndef TEST_STOCK_MEMBER_H
#define TEST_STOCK_MEMBER_H

#include <pmix.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/integration/stock_status.h"

#define MOST_WORDS 16

static pmix_proc_t self;
static pmix_nspace_t child; /* what was spawned last */

/* What one action was given, and what it says beside its status. */
struct action {
    char *words[MOST_WORDS + 1];
    int n;
    bool nb; /* NAME_nb: by the form that does not block */
    char said[65536];
};

static inline const char *word(const struct action *a, int i, const char *otherwise)
{
    return i < a->n && a->words[i][0] != '\0' ? a->words[i] : otherwise;
}

/* "self", "child", "parent" or a namespace. */
static inline void name_of(const char *text, pmix_rank_t rank, pmix_proc_t *out)
{
    pmix_value_t *value = NULL;
    if (strcmp(text, "parent") == 0 && PMIx_Get(&self, PMIX_PARENT_ID, NULL, 0, &value) == PMIX_SUCCESS) {
        *out = *value->data.proc;
        PMIX_VALUE_RELEASE(value);
        return;
    }
    PMIX_LOAD_PROCID(out,
                     strcmp(text, "self") == 0    ? self.nspace
                     : strcmp(text, "child") == 0 ? child
                                                  : text,
                     rank);
}

static inline pmix_rank_t rank_of(const char *text)
{
    return strcmp(text, "*") == 0 ? PMIX_RANK_WILDCARD : (pmix_rank_t)atol(text);
}

/* "0+1+2" of our namespace, "*" all of it; others by "NSPACE/RANK". */
static inline size_t procs_of(char *text, pmix_proc_t *out)
{
    size_t n = 0;
    for (char *rest = text, *one; (one = strsep(&rest, "+")) != NULL && n < MOST_WORDS; n++) {
        char *slash = strrchr(one, '/');
        if (slash != NULL)
            *slash = '\0';
        name_of(slash == NULL ? "self" : one, rank_of(slash == NULL ? one : slash + 1), &out[n]);
    }
    return n;
}

static inline uint8_t number_of(const char *text, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], text) == 0)
            return (uint8_t)i;
    return 0;
}

static inline uint8_t range_of(const char *text)
{
    static const char *const ranges[] = {"undef",   "rm",     "local",  "namespace",
                                         "session", "global", "custom", "proc"};
    return number_of(text, ranges, sizeof(ranges) / sizeof(ranges[0]));
}

static inline uint8_t persistence_of(const char *text)
{
    static const char *const persistences[] = {"indef", "first", "proc", "app", "session"};
    return number_of(text, persistences, sizeof(persistences) / sizeof(persistences[0]));
}

/* " RANK/PID/EXECUTABLE/STATE" of each */
static inline void say_procs(struct action *a, const pmix_data_array_t *array)
{
    const pmix_proc_info_t *info = array->array;
    size_t len = 0;
    for (size_t i = 0; i < array->size; i++) {
        const char *name = info[i].executable_name == NULL ? NULL : strrchr(info[i].executable_name, '/');
        len += (size_t)snprintf(a->said + len, sizeof(a->said) - len, " %u/%d/%s/%s", info[i].proc.rank,
                                (int)info[i].pid, name == NULL ? "" : name + 1,
                                PMIx_Proc_state_string(info[i].state));
    }
}

static inline void say_value(struct action *a, const pmix_value_t *value)
{
    if (value->type == PMIX_STRING)
        snprintf(a->said, sizeof(a->said), " %s", value->data.string);
    else if (value->type == PMIX_UINT32)
        snprintf(a->said, sizeof(a->said), " %u", value->data.uint32);
    else if (value->type == PMIX_SIZE)
        snprintf(a->said, sizeof(a->said), " %zu", value->data.size);
    else if (value->type == PMIX_PROC_RANK)
        snprintf(a->said, sizeof(a->said), " %u", value->data.rank);
    else if (value->type == PMIX_UINT16)
        snprintf(a->said, sizeof(a->said), " %u", value->data.uint16);
    else if (value->type == PMIX_BOOL)
        snprintf(a->said, sizeof(a->said), " %s", value->data.flag ? "true" : "false");
    else if (value->type == PMIX_PROC)
        snprintf(a->said, sizeof(a->said), " %s %u", value->data.proc->nspace, value->data.proc->rank);
    else if (value->type == PMIX_BYTE_OBJECT)
        snprintf(a->said, sizeof(a->said), " %zu bytes", value->data.bo.size);
    else if (value->type == PMIX_STATUS)
        snprintf(a->said, sizeof(a->said), " %s", stock_status(value->data.status));
    else if (value->type == PMIX_DATA_ARRAY && value->data.darray->type == PMIX_PROC_INFO)
        say_procs(a, value->data.darray);
    else
        snprintf(a->said, sizeof(a->said), " type %d", value->type);
}

/* ---- answers that come later -------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* The non-blocking forms: what their callbacks are told, one at a time. */
static bool op_done;
static pmix_status_t op_status;

static inline void op_end(pmix_status_t status)
{
    pthread_mutex_lock(&lock);
    op_done = true;
    op_status = status;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static inline pmix_status_t op_wait(pmix_status_t rc)
{
    pthread_mutex_lock(&lock);
    while (rc == PMIX_SUCCESS && !op_done)
        pthread_cond_wait(&changed, &lock);
    op_done = false;
    pthread_mutex_unlock(&lock);
    return rc == PMIX_SUCCESS ? op_status : rc;
}

static inline void on_op(pmix_status_t status, void *cbdata)
{
    (void)cbdata;
    op_end(status);
}

#endif
