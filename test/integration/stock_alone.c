/*
 * stock_alone.c - what the stock library does by itself, beside whatever server it is connected to: each call
 * and what came of it, a line each.
 *
 *   stock_alone [URI]
 *
 * Without a URI, as a client of the server that has started it; with one, as a tool.
 */
#include <pmix.h>
#include <pmix_tool.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "test/integration/stock_status.h"

static pmix_proc_t self;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int answered;

static void alone_say(const char *what, pmix_status_t rc, const pmix_value_t *value)
{
    printf("%s: %s", what, stock_status(rc));
    if (rc == PMIX_SUCCESS && value != NULL && value->type == PMIX_STRING)
        printf(" %s", value->data.string);
    else if (rc == PMIX_SUCCESS && value != NULL)
        printf(" of type %u", value->type);
    printf("\n");
}

/* `key` of a process, with one attribute, or none. */
static void alone_get(const char *what, const char *nspace, const char *key, const char *attribute,
                      pmix_data_type_t type)
{
    const pmix_scope_t scope = PMIX_LOCAL;
    pmix_value_t *value = NULL;
    pmix_proc_t proc;
    pmix_info_t info;
    PMIX_LOAD_PROCID(&proc, nspace, self.rank);
    if (attribute != NULL)
        PMIX_INFO_LOAD(&info, attribute, type == PMIX_BOOL ? NULL : &scope, type);
    const pmix_status_t rc =
        PMIx_Get(&proc, key, attribute == NULL ? NULL : &info, attribute != NULL, &value);
    alone_say(what, rc, value);
}

static void on_value(pmix_status_t status, pmix_value_t *value, void *cbdata)
{
    (void)cbdata;
    pthread_mutex_lock(&lock);
    alone_say("get_nb", status, value);
    answered = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void alone_get_nb(const char *key)
{
    pmix_status_t rc = PMIx_Get_nb(&self, key, NULL, 0, on_value, NULL);
    pthread_mutex_lock(&lock);
    if (rc != PMIX_SUCCESS)
        alone_say("get_nb", rc, NULL);
    while (rc == PMIX_SUCCESS && !answered)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void alone_data(void)
{
    pmix_value_t value = {.type = PMIX_STRING, .data.string = "mine"};
    alone_say("store", PMIx_Store_internal(&self, "alone.stored", &value), NULL);
    alone_get("get stored", self.nspace, "alone.stored", NULL, 0);
    alone_say("put", PMIx_Put(PMIX_GLOBAL, "alone.put", &value), NULL);
    alone_say("put local", PMIx_Put(PMIX_LOCAL, "alone.local", &value), NULL);
    alone_get("get put", self.nspace, "alone.put", NULL, 0);
    alone_say("commit", PMIx_Commit(), NULL);
    alone_get("get committed", self.nspace, "alone.put", NULL, 0);
    alone_get("get of a scope", self.nspace, "alone.local", PMIX_DATA_SCOPE, PMIX_SCOPE);
    alone_get_nb("alone.stored");
    alone_get("get optional", self.nspace, "alone.absent", PMIX_OPTIONAL, PMIX_BOOL);
    alone_get("get immediate", self.nspace, "alone.absent", PMIX_IMMEDIATE, PMIX_BOOL);
    alone_get("get of nobody", "alone.nobody", "alone.absent", NULL, 0);
}

int main(int argc, char **argv)
{
    pmix_info_t info;
    pmix_status_t rc;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) {
        PMIX_INFO_LOAD(&info, PMIX_SERVER_URI, argv[1], PMIX_STRING);
        rc = PMIx_tool_init(&self, &info, 1);
    } else {
        rc = PMIx_Init(&self, NULL, 0);
    }
    if (rc != PMIX_SUCCESS) {
        alone_say("init", rc, NULL);
        return 1;
    }
    alone_data();
    alone_say("finalize", argc > 1 ? PMIx_tool_finalize() : PMIx_Finalize(NULL, 0), NULL);
    return 0;
}
