/* ingest_accept.c - where deliveries come in: of the front as a credential, over the control socket as is. */
#include <stdlib.h>
#include <string.h>

#include "fabricd/front/front.h"
#include "fabricd/sources/entry.h"

static int let_in(struct ingest_entry *entry, const char *credential, struct fab_err *err)
{
    size_t len = strlen(credential);
    if (len > INGEST_MAX_CREDENTIAL)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "a credential of %zu bytes: at most %zu are taken", len,
                        INGEST_MAX_CREDENTIAL);
    if (strncmp(credential, "MUNGE:", 6) != 0)
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "what was delivered is no munge credential");
    int rc = ingest_room(entry, len, err);
    if (rc == PMIXFAB_OK && (entry->check.credential = strdup(credential)) == NULL)
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    return rc;
}

void ingest_deliver(struct ingest *ingest, const char *credential, ingest_done_fn done, void *cbdata)
{
    struct fab_err err = {""};
    if (ingest == NULL || ingest->stopping) {
        done(INGEST_NOBODY, 0, INGEST_STOPPED, cbdata);
        return;
    }
    struct ingest_entry *entry = ingest_new(ingest);
    if (entry == NULL) {
        done(PMIXFAB_ERR_NOMEM, 0, "out of memory", cbdata);
        return;
    }
    entry->done = done;
    entry->cbdata = cbdata;
    int rc = let_in(entry, credential, &err);
    if (rc != PMIXFAB_OK)
        ingest_refuse(entry, rc, err.text);
    else
        ingest_queue(entry);
}

static int let_in_local(struct ingest_entry *entry, const void *bytes, size_t size, struct fab_err *err)
{
    if (size == 0 || size > FAB_DELIVERY_MAX)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "a delivery of %zu bytes: 1 to %d are taken", size,
                        FAB_DELIVERY_MAX);
    void *copy = entry->check.made.bytes = malloc(size);
    if (copy == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    memcpy(copy, bytes, size);
    int rc = fab_delivery_decode(copy, size, &entry->item.delivery, err);
    return rc == PMIXFAB_OK ? ingest_room(entry, size, err) : rc;
}

int ingest_local(struct ingest *ingest, const void *bytes, size_t size, unsigned uid, ingest_done_fn done,
                 void *cbdata, struct fab_err *err)
{
    if (ingest == NULL || ingest->stopping)
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "reports of nodes are taken by a scheduler only");
    struct ingest_entry *entry = ingest_new(ingest);
    if (entry == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    entry->done = done;
    entry->cbdata = cbdata;
    entry->item.uid = uid;
    int rc = let_in_local(entry, bytes, size, err);
    if (rc == PMIXFAB_OK)
        ingest_queue(entry);
    else
        ingest_free(entry);
    return rc;
}

/* ---- from the front ------------------------------------------------------------------------------- */

struct front_delivery {
    struct front *front;
    uint64_t number;
};

static void front_delivery_done(int code, uint64_t held, const char *reason, void *cbdata)
{
    struct front_delivery *delivery = cbdata;
    if (code == INGEST_NOBODY)
        front_turn_away(delivery->front, delivery->number);
    else
        front_answer(delivery->front, delivery->number, code, held, reason);
    free(delivery);
}

static void ingest_from_front(const char *credential, uint64_t number, void *cbdata)
{
    struct ingest *ingest = cbdata;
    struct front *front = ingest->parts.front;
    struct front_delivery *delivery = malloc(sizeof(*delivery));
    if (delivery == NULL) {
        front_turn_away(front, number);
        return;
    }
    *delivery = (struct front_delivery){front, number};
    ingest_deliver(ingest, credential, front_delivery_done, delivery);
}

int ingest_start(const struct ingest_parts *parts, ingest_fn fn, void *cbdata, struct ingest **out,
                 struct fab_err *err)
{
    const int rc = ingest_start_alone(parts, fn, cbdata, out, err);
    if (rc == PMIXFAB_OK && parts->front != NULL)
        front_on_delivery(parts->front, ingest_from_front, *out);
    return rc;
}

void ingest_stop(struct ingest *ingest)
{
    if (ingest != NULL && ingest->parts.front != NULL)
        front_on_delivery(ingest->parts.front, NULL, NULL); /* it turns them away itself */
    ingest_stop_alone(ingest);
}
