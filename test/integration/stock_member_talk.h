/*
 * stock_member_talk.h - how a stock_member talks with others than by data: events.
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
    pmix_data_array_t array = {.type = PMIX_PROC, .array = procs};
    pmix_info_t info[2];
    size_t n = 1;
    PMIX_INFO_LOAD(&info[0], "stock.text", a->words[1], PMIX_STRING);
    if (a->n > 2) {
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

#endif
