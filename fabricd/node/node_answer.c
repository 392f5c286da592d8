#include "fabricd/node/node_answer.h"

#include <pmix.h>

pmix_value_t *loop_queue_value(struct loop_queue_answer *answer, const char *key, pmix_data_type_t type)
{
    for (size_t i = 0; i < answer->n; i++)
        if (strcmp(answer->data[i].key, key) == 0 && answer->data[i].value.type == type)
            return &answer->data[i].value;
    return NULL;
}

/* Code, reason, and what it holds. False: it is no fabricd's answer. */
static bool read_scheduler(struct loop_queue_answer *answer, int *code, const char **reason, uint64_t *held)
{
    const pmix_value_t *c = loop_queue_value(answer, RELAY_CODE, PMIX_INT32);
    const pmix_value_t *r = loop_queue_value(answer, RELAY_REASON, PMIX_STRING);
    const pmix_value_t *h = loop_queue_value(answer, RELAY_DIGEST, PMIX_UINT64);
    if (c == NULL || r == NULL || r->data.string == NULL || h == NULL)
        return false;
    *code = c->data.int32;
    *reason = r->data.string;
    *held = h->data.uint64;
    return true;
}

/* What the relay or the library says instead of the scheduler. */
static int error_of(pmix_status_t status, const char **reason)
{
    switch (status) {
    case PMIX_ERR_UNREACH:
        *reason = "the scheduler cannot be reached";
        return PMIXFAB_ERR_UNREACH;
    case PMIX_ERR_TIMEOUT:
        *reason = "the scheduler does not answer in time";
        return PMIXFAB_ERR_TIMEOUT;
    case PMIX_ERR_NOT_AVAILABLE:
        *reason = "the scheduler takes no deliveries now";
        return PMIXFAB_ERR_BUSY;
    default:
        *reason = "the scheduler takes no deliveries: is it older than this fabricd?";
        return PMIXFAB_ERR_UNSUPPORTED;
    }
}

bool answer_may_pass(int code)
{
    return code == PMIXFAB_ERR_BUSY || code == PMIXFAB_ERR_TIMEOUT || code == PMIXFAB_ERR_UNREACH ||
           code == PMIXFAB_ERR_NOMEM || code == PMIXFAB_ERR_IO;
}

int answer_read(struct loop_queue_answer *answer, const char **reason, uint64_t *held)
{
    int code;
    *reason = "";
    if (answer->status != PMIX_SUCCESS)
        return error_of(answer->status, reason);
    if (read_scheduler(answer, &code, reason, held))
        return code;
    *reason = "the scheduler's answer is not what a fabricd says";
    return PMIXFAB_ERR_FOREIGN;
}
