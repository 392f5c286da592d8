/*
 * stock_member_talk.h - how a stock_member talks with others than by data: events, log, connect.
 */
#ifndef TEST_STOCK_MEMBER_TALK_H
#define TEST_STOCK_MEMBER_TALK_H

#include "test/integration/stock_member.h"

/* ---- events ------------------------------------------------------------------------------------- */

#define MOST_EVENTS 64

static struct {
    int number;
    pmix_proc_t source;
    char text[64];
} events[MOST_EVENTS];
static int n_events;
static size_t handler;

static inline void on_event(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[],
                            size_t n, pmix_info_t results[], size_t n_results,
                            pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)id, (void)results, (void)n_results;
    pthread_mutex_lock(&lock);
    if (n_events < MOST_EVENTS) {
        events[n_events].number = PMIX_EXTERNAL_ERR_BASE - code;
        events[n_events].source = *source;
        for (size_t i = 0; i < n; i++)
            if (strcmp(info[i].key, "stock.text") == 0)
                snprintf(events[n_events].text, sizeof(events[0].text), "%s", info[i].value.data.string);
        n_events++;
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (done != NULL)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

/* register=NUMBER: for the event of that number */
static inline pmix_status_t do_register(struct action *a)
{
    pmix_status_t code = PMIX_EXTERNAL_ERR_BASE - atoi(a->words[0]);
    pmix_status_t rc = PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL);
    handler = rc < 0 ? handler : (size_t)rc;
    return rc < 0 ? rc : PMIX_SUCCESS;
}

/* What was registered last. */
static inline pmix_status_t do_deregister(struct action *a)
{
    (void)a;
    return PMIx_Deregister_event_handler(handler, NULL, NULL);
}

/* notify=NUMBER,RANGE[,PROCS]: with processes to those of a custom range */
static inline pmix_status_t do_notify(struct action *a)
{
    pmix_proc_t procs[MOST_WORDS];
    pmix_data_array_t array;
    pmix_info_t info[2];
    size_t n = 1;
    PMIX_INFO_LOAD(&info[0], "stock.text", a->words[1], PMIX_STRING);
    if (a->n > 2) {
        array.type = PMIX_PROC;
        array.array = procs;
        array.size = procs_of(a->words[2], procs);
        PMIX_INFO_LOAD(&info[n++], PMIX_EVENT_CUSTOM_RANGE, &array, PMIX_DATA_ARRAY);
    }
    const uint8_t range = range_of(a->words[1]);
    return a->nb ? op_wait(PMIx_Notify_event(PMIX_EXTERNAL_ERR_BASE - atoi(a->words[0]), &self, range, info,
                                             n, on_op, NULL))
                 : PMIx_Notify_event(PMIX_EXTERNAL_ERR_BASE - atoi(a->words[0]), &self, range, info, n, NULL,
                                     NULL);
}

/* events=N: waits for so many; says the text and the source's rank of all that there were */
static inline pmix_status_t do_events(struct action *a)
{
    size_t len = 0;
    pthread_mutex_lock(&lock);
    while (n_events < atoi(a->words[0]))
        pthread_cond_wait(&changed, &lock);
    for (int i = 0; i < n_events; i++)
        len += (size_t)snprintf(a->said + len, sizeof(a->said) - len, " %d:%s:%u", events[i].number,
                                events[i].text, events[i].source.rank);
    pthread_mutex_unlock(&lock);
    return PMIX_SUCCESS;
}

/* ---- log ---------------------------------------------------------------------------------------- */

/* log=CHANNEL+CHANNEL...,TEXT[,DIRECTIVE+DIRECTIVE...]: keys without their "pmix.log." */
static inline pmix_status_t do_log(struct action *a)
{
    pmix_info_t data[MOST_WORDS], directives[MOST_WORDS];
    char key[PMIX_MAX_KEYLEN + 1], *one;
    const bool yes = true;
    size_t n = 0, n_directives = 0;
    for (char *rest = a->words[0]; (one = strsep(&rest, "+")) != NULL && n < MOST_WORDS; n++) {
        snprintf(key, sizeof(key), "pmix.log.%s", one);
        PMIX_INFO_LOAD(&data[n], key, a->words[1], PMIX_STRING);
    }
    for (char *rest = a->n > 2 ? a->words[2] : NULL; (one = strsep(&rest, "+")) != NULL; n_directives++) {
        snprintf(key, sizeof(key), "pmix.log.%s", one);
        PMIX_INFO_LOAD(&directives[n_directives], key, &yes, PMIX_BOOL);
    }
    return a->nb ? op_wait(PMIx_Log_nb(data, n, directives, n_directives, on_op, NULL))
                 : PMIx_Log(data, n, directives, n_directives);
}

/* ---- connect ------------------------------------------------------------------------------------ */

/* connect=PROCS[,SECONDS] */
static inline pmix_status_t do_connect(struct action *a)
{
    pmix_proc_t procs[MOST_WORDS];
    pmix_info_t info;
    const int seconds = atoi(word(a, 1, "0"));
    const size_t n = procs_of(a->words[0], procs), n_info = seconds > 0;
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &seconds, PMIX_INT);
    return a->nb ? op_wait(PMIx_Connect_nb(procs, n, n_info > 0 ? &info : NULL, n_info, on_op, NULL))
                 : PMIx_Connect(procs, n, n_info > 0 ? &info : NULL, n_info);
}

/* disconnect=PROCS */
static inline pmix_status_t do_disconnect(struct action *a)
{
    pmix_proc_t procs[MOST_WORDS];
    const size_t n = procs_of(a->words[0], procs);
    return a->nb ? op_wait(PMIx_Disconnect_nb(procs, n, NULL, 0, on_op, NULL))
                 : PMIx_Disconnect(procs, n, NULL, 0);
}

#endif
