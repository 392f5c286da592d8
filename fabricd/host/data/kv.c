#include "fabricd/host/data/kv.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/host/data/kv_store.h"
#include "fabricd/host/data/kv_waiters.h"
#include "pmix/relay/thread.h"

#define MOST_ENTRIES 262144
#define MOST_BYTES   ((size_t)256 << 20) /* of all values */

static struct kv_entry *kv_entries;
static size_t kv_bytes;

/* ---- names -------------------------------------------------------------------------------------- */

static bool kv_is_data(const pmix_info_t *info)
{
    return strncmp(info->key, "pmix", 4) != 0;
}

/* Of a directive that is not understood nobody knows whom it was to keep out. */
static pmix_status_t kv_range(const pmix_info_t info[], size_t n, uint8_t *range)
{
    *range = PMIX_RANGE_SESSION;
    for (size_t i = 0; i < n; i++) {
        if (!PMIX_CHECK_KEY(&info[i], PMIX_RANGE))
            continue;
        if (info[i].value.type != PMIX_DATA_RANGE)
            return PMIX_ERR_BAD_PARAM;
        *range = info[i].value.data.range;
    }
    return PMIX_SUCCESS;
}

static pmix_status_t kv_persistence(const pmix_info_t info[], size_t n, uint8_t *persistence)
{
    *persistence = PMIX_PERSIST_APP;
    for (size_t i = 0; i < n; i++) {
        if (!PMIX_CHECK_KEY(&info[i], PMIX_PERSISTENCE))
            continue;
        if (info[i].value.type != PMIX_PERSIST || info[i].value.data.persist > PMIX_PERSIST_SESSION)
            return PMIX_ERR_BAD_PARAM;
        *persistence = info[i].value.data.persist;
    }
    return PMIX_SUCCESS;
}

/* What has this name is seen by who asks for the same range, and is in it. Of one host and one user local,
 * session and global are three names for all. */
static pmix_status_t kv_name(uint8_t range, const pmix_proc_t *proc, const char *key, char name[KV_NAME_SIZE],
                             size_t *key_at)
{
    int len;
    switch (range) {
    case PMIX_RANGE_LOCAL:
    case PMIX_RANGE_SESSION:
    case PMIX_RANGE_GLOBAL:
        len = snprintf(name, KV_NAME_SIZE, "%u\n", range);
        break;
    case PMIX_RANGE_NAMESPACE:
        len = snprintf(name, KV_NAME_SIZE, "%u %s\n", range, proc->nspace);
        break;
    case PMIX_RANGE_PROC_LOCAL:
        len = snprintf(name, KV_NAME_SIZE, "%u %s %u\n", range, proc->nspace, proc->rank);
        break;
    default:
        return PMIX_ERR_NOT_SUPPORTED;
    }
    *key_at = (size_t)len;
    snprintf(name + len, KV_NAME_SIZE - (size_t)len, "%s", key);
    return PMIX_SUCCESS;
}

static struct kv_entry *kv_find(uint8_t range, const pmix_proc_t *proc, const char *key)
{
    char name[KV_NAME_SIZE];
    size_t key_at;
    struct kv_entry *entry = NULL;
    if (kv_name(range, proc, key, name, &key_at) == PMIX_SUCCESS)
        HASH_FIND_STR(kv_entries, name, entry);
    return entry;
}

/* ---- entries ------------------------------------------------------------------------------------ */

static bool kv_is_durable(const struct kv_entry *entry)
{
    return entry->persistence == PMIX_PERSIST_APP || entry->persistence == PMIX_PERSIST_SESSION ||
           entry->persistence == PMIX_PERSIST_INDEF;
}

static void kv_free(struct kv_entry *entry)
{
    PMIX_VALUE_DESTRUCT(&entry->value);
    free(entry);
}

static void kv_add(struct kv_entry *entry)
{
    entry->key = strchr(entry->name, '\n');
    entry->key = entry->key == NULL ? entry->name : entry->key + 1;
    kv_bytes += entry->size;
    HASH_ADD_STR(kv_entries, name, entry); /* NOLINT(clang-analyzer-*): the table keeps it */
}

static void kv_remove(struct kv_entry *entry, bool stored)
{
    if (stored && kv_is_durable(entry))
        kv_store_delete(entry);
    kv_bytes -= entry->size;
    HASH_DEL(kv_entries, entry); /* NOLINT(clang-analyzer-unix.Malloc): nothing links to a freed one */
    kv_free(entry);
}

/* ---- publish ------------------------------------------------------------------------------------ */

static pmix_status_t kv_publish_one(const pmix_proc_t *proc, const pmix_info_t *info, uint8_t range,
                                    uint8_t persistence)
{
    struct kv_entry *entry = calloc(1, sizeof(*entry));
    pmix_data_buffer_t packed;
    size_t key_at;
    if (entry == NULL)
        return PMIX_ERR_NOMEM;
    PMIX_DATA_BUFFER_CONSTRUCT(&packed);
    entry->publisher = *proc;
    entry->persistence = persistence;
    pmix_status_t rc = kv_name(range, proc, info->key, entry->name, &key_at);
    if (rc == PMIX_SUCCESS)
        rc = PMIx_Data_pack(NULL, &packed, (void *)&info->value, 1, PMIX_VALUE);
    entry->size = packed.bytes_used;
    if (rc == PMIX_SUCCESS && kv_find(range, proc, info->key) != NULL)
        rc = PMIX_ERR_DUPLICATE_KEY;
    if (rc == PMIX_SUCCESS && (HASH_COUNT(kv_entries) >= MOST_ENTRIES || kv_bytes + entry->size > MOST_BYTES))
        rc = PMIX_ERR_OUT_OF_RESOURCE;
    if (rc == PMIX_SUCCESS)
        rc = PMIx_Value_xfer(&entry->value, &info->value);
    if (rc == PMIX_SUCCESS && kv_is_durable(entry) && !kv_store_put(entry, packed.base_ptr))
        rc = PMIX_ERR_OUT_OF_RESOURCE;
    PMIX_DATA_BUFFER_DESTRUCT(&packed);
    if (rc == PMIX_SUCCESS)
        kv_add(entry);
    else
        kv_free(entry);
    return rc;
}

/* All of it, or nothing. */
pmix_status_t kv_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t n, pmix_op_cbfunc_t cbfunc,
                         void *cbdata)
{
    uint8_t range, persistence;
    size_t done = 0, values = 0;
    pmix_status_t rc = kv_range(info, n, &range);
    if (rc == PMIX_SUCCESS)
        rc = kv_persistence(info, n, &persistence);
    for (; rc == PMIX_SUCCESS && done < n; done++) {
        if (!kv_is_data(&info[done]))
            continue;
        rc = kv_publish_one(proc, &info[done], range, persistence);
        values++;
    }
    if (rc == PMIX_SUCCESS && values == 0)
        rc = PMIX_ERR_BAD_PARAM; /* names that begin with "pmix" are the standard's */
    if (!kv_store_end(rc == PMIX_SUCCESS) && rc == PMIX_SUCCESS)
        rc = PMIX_ERR_OUT_OF_RESOURCE, done++;
    for (size_t i = 0; rc != PMIX_SUCCESS && i + 1 < done; i++)
        if (kv_is_data(&info[i]))
            kv_remove(kv_find(range, proc, info[i].key), false);
    if (rc != PMIX_SUCCESS)
        return rc;
    cbfunc(PMIX_SUCCESS, cbdata);
    kv_waiters_look();
    return PMIX_SUCCESS;
}

/* ---- lookup ------------------------------------------------------------------------------------- */

/* What there is of the keys; false: less than is wanted. */
static bool kv_answer(const struct kv_question *question, bool enough)
{
    size_t n = 0, found = 0;
    while (question->keys[n] != NULL)
        n++;
    pmix_pdata_t *data = calloc(n + 1, sizeof(*data));
    struct kv_entry **entries = calloc(n + 1, sizeof(struct kv_entry *));
    for (size_t i = 0; data != NULL && entries != NULL && i < n; i++) {
        struct kv_entry *entry = kv_find(question->range, &question->proc, question->keys[i]);
        if (entry == NULL)
            continue;
        data[found].proc = entry->publisher;
        PMIX_LOAD_KEY(data[found].key, entry->key);
        data[found].value = entry->value; /* lent: it is packed before the call returns */
        entries[found++] = entry;
    }
    const size_t wanted = question->wanted == 0 || question->wanted > n ? n : question->wanted;
    const bool answers = enough || found >= wanted;
    if (answers)
        question->cbfunc(data == NULL || entries == NULL ? PMIX_ERR_NOMEM
                         : found == 0                    ? PMIX_ERR_NOT_FOUND
                                                         : PMIX_SUCCESS,
                         data, found, question->cbdata);
    for (size_t i = 0; answers && i < found; i++) {
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= entries[k] == entries[i];
        if (!again && entries[i]->persistence == PMIX_PERSIST_FIRST_READ)
            kv_remove(entries[i], false);
    }
    free(data);
    free(entries);
    return answers;
}

pmix_status_t kv_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t n,
                        pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    struct kv_question question = {.proc = *proc, .keys = keys, .cbfunc = cbfunc, .cbdata = cbdata};
    char name[KV_NAME_SIZE];
    size_t key_at;
    bool waits = false;
    int seconds = 0;
    if (keys == NULL || keys[0] == NULL)
        return PMIX_ERR_BAD_PARAM;
    pmix_status_t rc = kv_range(info, n, &question.range);
    if (rc == PMIX_SUCCESS)
        rc = kv_name(question.range, proc, keys[0], name, &key_at);
    for (size_t i = 0; rc == PMIX_SUCCESS && i < n; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_WAIT)) {
            waits = true;
            PMIX_VALUE_GET_NUMBER(rc, &info[i].value, question.wanted, size_t);
        } else if (PMIX_CHECK_KEY(&info[i], PMIX_TIMEOUT)) {
            PMIX_VALUE_GET_NUMBER(rc, &info[i].value, seconds, int);
        }
    }
    if (rc != PMIX_SUCCESS)
        return rc;
    if (kv_answer(&question, !waits))
        return PMIX_SUCCESS;
    return kv_waiters_add(&question, seconds);
}

/* ---- unpublish, and ends ------------------------------------------------------------------------ */

/* NULL: every one of the publisher's own, of any range. */
pmix_status_t kv_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t n,
                           pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    uint8_t range;
    struct kv_entry *entry, *next;
    pmix_status_t rc = kv_range(info, n, &range);
    if (rc != PMIX_SUCCESS)
        return rc;
    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++) {
        entry = kv_find(range, proc, keys[i]);
        if (entry == NULL)
            rc = PMIX_ERR_NOT_FOUND;
        else if (!kv_is_of(&entry->publisher, proc))
            rc = PMIX_ERR_NO_PERMISSIONS;
        else
            kv_remove(entry, true);
    }
    HASH_ITER(hh, kv_entries, entry, next)
    {
        if (keys == NULL && kv_is_of(&entry->publisher, proc))
            kv_remove(entry, true);
    }
    if (!kv_store_end(true))
        rc = PMIX_ERR_OUT_OF_RESOURCE;
    if (rc == PMIX_SUCCESS)
        cbfunc(PMIX_SUCCESS, cbdata);
    return rc;
}

/* On the library's thread, also within its own end, when it must not be called. */
void kv_left(const pmix_proc_t *proc)
{
    struct kv_entry *entry, *next;
    kv_waiters_ended(proc);
    const bool all = proc->rank == PMIX_RANK_WILDCARD;
    HASH_ITER(hh, kv_entries, entry, next)
    {
        if (kv_is_of(&entry->publisher, proc) &&
            (entry->persistence == PMIX_PERSIST_PROC || (all && entry->persistence == PMIX_PERSIST_APP)))
            kv_remove(entry, true);
    }
    kv_store_end(true);
}

static void kv_on_ended(pmix_status_t status, void *cbdata)
{
    (void)status;
    kv_left(cbdata);
    free(cbdata);
}

void kv_ended(const pmix_proc_t *proc)
{
    pmix_proc_t *copy = malloc(sizeof(*copy));
    if (copy == NULL)
        return;
    *copy = *proc;
    fab_on_pmix_thread(kv_on_ended, copy);
}

struct opening {
    const char *store;
    struct fab_err *err;
    int rc;
};

static void kv_open(pmix_status_t status, void *cbdata)
{
    struct opening *opening = cbdata;
    (void)status;
    opening->rc = kv_store_open(opening->store, kv_add, opening->err);
}

int kv_start(struct event_base *base, const char *store, struct fab_err *err)
{
    struct opening opening = {.store = store, .err = err};
    int rc = kv_waiters_start(base, kv_answer);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "the loop has no timer");
    fab_on_pmix_thread(kv_open, &opening);
    fab_wait_for_pmix_thread();
    return opening.rc;
}

void kv_stop(void)
{
    struct kv_entry *entry, *next;
    kv_waiters_stop();
    HASH_ITER(hh, kv_entries, entry, next)
    {
        kv_remove(entry, false);
    }
    kv_store_close();
}
