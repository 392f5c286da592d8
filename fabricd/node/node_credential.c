#include "fabricd/node/node_credential.h"

#include <stdlib.h>

#include "fabricd/base/work.h"

struct credential {
    struct work *work;
    credential_done_fn done;
    void *cbdata;
    void *bytes;
    size_t size;
    munge_err_t failed;
    char *text;
};

static void credential_free(void *arg)
{
    struct credential *c = arg;
    free(c->bytes);
    free(c->text);
    free(c);
}

static void credential_run(void *arg)
{
    struct credential *c = arg;
    c->failed = munge_encode(&c->text, NULL, c->bytes, (int)c->size);
}

static void credential_on_made(void *arg)
{
    struct credential *c = arg;
    c->done(c->failed, c->failed == EMUNGE_SUCCESS ? c->text : NULL, c->cbdata);
    credential_free(c);
}

int credential_make(struct event_base *base, void *bytes, size_t size, credential_done_fn done, void *cbdata,
                    struct credential **out)
{
    struct credential *c = *out = calloc(1, sizeof(*c));
    if (c == NULL) {
        free(bytes);
        return PMIXFAB_ERR_NOMEM;
    }
    *c = (struct credential){.done = done, .cbdata = cbdata, .bytes = bytes, .size = size};
    c->work = work_run(base, credential_run, credential_on_made, c);
    if (c->work != NULL)
        return PMIXFAB_OK;
    credential_free(c);
    *out = NULL;
    return PMIXFAB_ERR_NOMEM;
}

void credential_cancel(struct credential *c)
{
    if (c != NULL && work_leave(c->work, 0, credential_free))
        credential_free(c);
}
