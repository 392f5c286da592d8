#include "fabricd/node/deliver/node_credential.h"
#include "fabricd/util/loop.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct credential {
    pthread_mutex_t lock;
    struct event *bell; /* NULL: nobody waits any more */
    bool made;
    credential_done_fn done;
    void *cbdata;
    void *bytes;
    size_t size;
    munge_err_t failed;
    char *text;
};

static void credential_free(struct credential *c)
{
    loop_event_free(c->bell);
    pthread_mutex_destroy(&c->lock);
    free(c->bytes);
    free(c->text);
    free(c);
}

/* It belongs to the thread until it is made, then to the loop; whoever comes last frees it. */
static void *credential_thread(void *arg)
{
    struct credential *c = arg;
    char *text = NULL;
    munge_err_t failed = munge_encode(&text, NULL, c->bytes, (int)c->size);
    pthread_mutex_lock(&c->lock);
    c->failed = failed;
    c->text = text;
    c->made = true;
    bool wanted = c->bell != NULL;
    if (wanted)
        event_active(c->bell, EV_TIMEOUT, 0);
    pthread_mutex_unlock(&c->lock);
    if (!wanted)
        credential_free(c);
    return NULL;
}

static void credential_on_wakeup(evutil_socket_t fd, short what, void *arg)
{
    struct credential *c = arg;
    (void)fd, (void)what;
    pthread_mutex_lock(&c->lock); /* the thread may still be in there */
    pthread_mutex_unlock(&c->lock);
    c->done(c->failed, c->failed == EMUNGE_SUCCESS ? c->text : NULL, c->cbdata);
    credential_free(c);
}

int credential_make(struct event_base *base, void *bytes, size_t size, credential_done_fn done, void *cbdata,
                    struct credential **out)
{
    pthread_attr_t attr;
    pthread_t thread;
    struct credential *c = *out = calloc(1, sizeof(*c));
    if (c == NULL) {
        free(bytes);
        return PMIXFAB_ERR_NOMEM;
    }
    *c = (struct credential){.done = done, .cbdata = cbdata, .bytes = bytes, .size = size};
    pthread_mutex_init(&c->lock, NULL);
    c->bell = evtimer_new(base, credential_on_wakeup, c);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int failed = c->bell == NULL ? -1 : pthread_create(&thread, &attr, credential_thread, c);
    pthread_attr_destroy(&attr);
    if (failed == 0)
        return PMIXFAB_OK;
    credential_free(c);
    *out = NULL;
    return PMIXFAB_ERR_NOMEM;
}

void credential_cancel(struct credential *c)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    event_free(c->bell);
    c->bell = NULL;
    bool made = c->made;
    pthread_mutex_unlock(&c->lock);
    if (made)
        credential_free(c);
}
