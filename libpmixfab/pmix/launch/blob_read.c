/* blob_read.c - a blob that may be anybody's: all of it is looked at before anything of it is used. */
#include <stdlib.h>

#include "pmix/launch/blob_format.h"
#include "pmix/launch/forward.h"
#include "topo/base/text.h"
#include "topo/snapshot/excerpt.h"

/* A text in the frame; NULL: it is none. */
static const char *blob_get_text(struct frame *in)
{
    const size_t length = (size_t)frame_get(in, 4);
    const char *text = (const char *)frame_bytes(in, length + 1);
    return text != NULL && strnlen(text, length + 1) == length ? text : NULL;
}

/* Each takes 5 bytes at least. */
static bool blob_get_texts(struct frame *in, const char *const **out, uint32_t *n)
{
    const uint32_t count = (uint32_t)frame_get(in, 4);
    const char **texts = count > frame_left(in) / 5 ? NULL : calloc((size_t)count + 1, sizeof(*texts));
    *out = texts;
    for (*n = 0; texts != NULL && *n < count; ++*n)
        if ((texts[*n] = blob_get_text(in)) == NULL)
            return false;
    return texts != NULL;
}

static bool blob_get_planes(struct frame *in, struct fab_blob *out, struct fab_err *err)
{
    const uint32_t n = (uint32_t)frame_get(in, 4);
    const struct pmixfab **planes = n > frame_left(in) ? NULL : calloc((size_t)n + 1, sizeof(*planes));
    out->planes = planes;
    for (struct pmixfab *plane; planes != NULL && out->n_planes < n; planes[out->n_planes++] = plane)
        if (fab_excerpt_read(in, &plane, err) != PMIXFAB_OK)
            return false;
    return planes != NULL;
}

/* The planes one behind the other, and of each its numbers in their order, none twice. */
static bool blob_bad_endpoints(const struct fab_blob_endpoints *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const int order = i == 0 ? -1 : strcmp(list[i - 1].plane, list[i].plane);
        if (list[i].first == 0 || list[i].first > list[i].last || order > 0 ||
            (order == 0 && list[i - 1].last >= list[i].first))
            return true;
    }
    return false;
}

/* Each takes 13 bytes at least. */
static bool blob_get_endpoints(struct frame *in, struct fab_blob *out)
{
    out->per_process = (uint32_t)frame_get(in, 4);
    out->per_node = (uint32_t)frame_get(in, 4);
    const uint32_t n = (uint32_t)frame_get(in, 4);
    struct fab_blob_endpoints *list = n > frame_left(in) / 13 ? NULL : calloc((size_t)n + 1, sizeof(*list));
    out->endpoints = list;
    if (list == NULL || out->per_process > FAB_BLOB_ENDPOINTS || out->per_node > FAB_BLOB_ENDPOINTS ||
        (n == 0) != (out->per_process == 0 && out->per_node == 0))
        return false;
    for (; out->n_endpoints < n; out->n_endpoints++) {
        struct fab_blob_endpoints *one = &list[out->n_endpoints];
        if ((one->plane = blob_get_text(in)) == NULL)
            return false;
        one->first = (uint32_t)frame_get(in, 4);
        one->last = (uint32_t)frame_get(in, 4);
    }
    return !blob_bad_endpoints(list, n);
}

/* A variable that nobody could set, or that is not the starter's to set. */
static bool blob_bad_env(const char *env)
{
    const size_t length = strcspn(env, "=");
    return length == 0 || env[length] != '=' || fab_forward_reserved(env, length);
}

bool fab_blob_bad_id(const char *id)
{
    return strlen(id) > PMIX_MAX_KEYLEN || strncmp(id, "pmix", strlen("pmix")) == 0;
}

static bool blob_get_rest(struct frame *in, struct fab_blob *out, struct fab_err *err)
{
    out->id = blob_get_text(in);
    out->plane = blob_get_text(in);
    if (out->id == NULL || out->plane == NULL || fab_blob_bad_id(out->id) || !blob_get_endpoints(in, out))
        return false;
    const uint64_t has_secret = frame_get(in, 1);
    const uint8_t *secret = has_secret == 1 ? frame_bytes(in, FAB_BLOB_SECRET) : NULL;
    out->has_secret = secret != NULL;
    if (secret != NULL)
        memcpy(out->secret, secret, FAB_BLOB_SECRET);
    if (has_secret > 1 || !blob_get_texts(in, &out->envs, &out->n_envs) ||
        !blob_get_texts(in, &out->parents, &out->n_parents))
        return false;
    for (uint32_t i = 0; i < out->n_envs; i++)
        if (blob_bad_env(out->envs[i]))
            return false;
    for (uint32_t i = 0; i < out->n_parents; i++)
        if (strlen(out->parents[i]) > PMIX_MAX_NSLEN)
            return false;
    return blob_get_planes(in, out, err) && !in->overrun && frame_left(in) == 0;
}

int fab_blob_read(const void *bytes, size_t size, const char *nspace, struct fab_blob *out,
                  struct fab_err *err)
{
    struct fab_err why = {""};
    struct frame in;
    char shown[80];
    *out = (struct fab_blob){.nspace = NULL};
    int rc = frame_open(&blob_frame, bytes, size, &in, err);
    if (rc != PMIXFAB_OK)
        return rc;
    out->nspace = blob_get_text(&in);
    if (out->nspace == NULL || !blob_get_rest(&in, out, &why))
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT, "the launch information is impossible%s%s",
                      why.text[0] != '\0' ? ": " : "", why.text);
    else if (strcmp(out->nspace, nspace) != 0) {
        fab_text_clean(shown, sizeof(shown), out->nspace, strlen(out->nspace), NULL);
        rc = fab_fail(err, PMIXFAB_ERR_CONFLICT, "the launch information is of job %s", shown);
    }
    if (rc != PMIXFAB_OK)
        fab_blob_free(out);
    return rc;
}

void fab_blob_free(struct fab_blob *blob)
{
    for (uint32_t p = 0; p < blob->n_planes; p++)
        pmixfab_close((struct pmixfab *)blob->planes[p]);
    free((void *)blob->planes);
    free((void *)blob->endpoints);
    free((void *)blob->envs);
    free((void *)blob->parents);
    explicit_bzero(blob, sizeof(*blob));
}
