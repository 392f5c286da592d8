/*
 * blob.c - the packet that a starter sends to its nodes:
 *
 *   frame head | namespace | id | plane | endpoints | secret | variables | parents | excerpts
 *
 * A text has its length before it and a 0 after it. The reader checks everything before it uses anything: the
 * sender may be anyone.
 */

#include "pmix/launch/blob.h"

#include <stdlib.h>
#include <string.h>

#include "pmix/launch/places.h"
#include "topo/base/text.h"
#include "topo/model/model.h"
#include "topo/snapshot/excerpt.h"

#define FORWARD_DIVIDERS ";,"

static bool forward_fits_one(const char *pattern, size_t n, const char *name, size_t length)
{
    for (size_t i = 0; i < n; i++) {
        if (pattern[i] == '*')
            return true;
        if (i == length || (pattern[i] != '?' && pattern[i] != name[i]))
            return false;
    }
    return n > 0 && n == length;
}

bool fab_forward_fits(const char *patterns, const char *name, size_t length)
{
    for (size_t n; patterns != NULL && *patterns != '\0'; patterns += n + (patterns[n] != '\0')) {
        n = strcspn(patterns, FORWARD_DIVIDERS);
        if (forward_fits_one(patterns, n, name, length))
            return true;
    }
    return false;
}

bool fab_forward_wrong(const char *patterns)
{
    for (size_t i = 0; patterns != NULL && patterns[i] != '\0'; i++)
        if (patterns[i] == '=' || (patterns[i] == '*' && patterns[i + 1] != '\0' &&
                                   strchr(FORWARD_DIVIDERS, patterns[i + 1]) == NULL))
            return true;
    return false;
}

static bool fab_forward_reserved(const char *name, size_t length)
{
    static const char library[] = "PMIX_", settings[] = "PMIX_MCA_", secret[] = FAB_FORWARD_SECRET;
    const bool setting = strncmp(name, settings, sizeof(settings) - 1) == 0;
    return (strncmp(name, library, sizeof(library) - 1) == 0 && !setting) ||
           (length == sizeof(secret) - 1 && strncmp(name, secret, length) == 0);
}

const char **fab_forward_harvest(char *const *env, const char *const *patterns, size_t n, const char *except,
                                 uint32_t *found)
{
    size_t room = 0;
    *found = 0;
    while (env != NULL && env[room] != NULL)
        room++;
    const char **list = calloc(room + 1, sizeof(*list));
    for (size_t i = 0; list != NULL && i < room; i++) {
        const size_t length = strcspn(env[i], "=");
        bool fits = false;
        for (size_t k = 0; k < n; k++)
            fits |= fab_forward_fits(patterns[k], env[i], length);
        if (fits && env[i][length] == '=' && !fab_forward_fits(except, env[i], length) &&
            !fab_forward_reserved(env[i], length))
            list[(*found)++] = env[i];
    }
    return list;
}

static void blob_put_text(struct fab_bytes *out, const char *text)
{
    const size_t length = strlen(text);
    fab_bytes_put(out, length, 4);
    fab_bytes_add(out, text, length + 1);
}

static void blob_put_texts(struct fab_bytes *out, const char *const *texts, uint32_t n)
{
    fab_bytes_put(out, n, 4);
    for (uint32_t i = 0; i < n; i++)
        blob_put_text(out, texts[i]);
}

static void blob_put_endpoints(struct fab_bytes *out, const struct fab_blob *blob)
{
    fab_bytes_put(out, blob->per_process, 4);
    fab_bytes_put(out, blob->per_node, 4);
    fab_bytes_put(out, blob->n_endpoints, 4);
    for (uint32_t i = 0; i < blob->n_endpoints; i++) {
        blob_put_text(out, blob->endpoints[i].plane);
        fab_bytes_put(out, blob->endpoints[i].first, 4);
        fab_bytes_put(out, blob->endpoints[i].last, 4);
    }
}

/* Mark the hosts of each plane: wanted[plane][host]. */
static int blob_mark(const struct fab_blob *blob, const struct fab_blob_hosts *hosts, bool **wanted)
{
    const struct fab_launch_job job = {.planes = blob->planes,
                                       .n_planes = blob->n_planes,
                                       .hosts = hosts->names,
                                       .n_hosts = hosts->n,
                                       .here = FAB_NONE};
    struct launch_places places;
    pmix_status_t rc = launch_places_find(&job, &places);
    for (uint32_t h = 0; rc == PMIX_SUCCESS && h < hosts->n; h++)
        for (uint32_t p = 0; p < blob->n_planes; p++) {
            const uint32_t host = places.host[(size_t)h * blob->n_planes + p];
            if (host != FAB_NONE)
                wanted[p][0] = wanted[p][1 + host] = true; /* [0]: any */
        }
    launch_places_free(&places);
    return rc == PMIX_SUCCESS ? PMIXFAB_OK : PMIXFAB_ERR_NOMEM;
}

static int blob_put_planes(const struct fab_blob *blob, const struct fab_blob_hosts *hosts, uint32_t n_hosts,
                           struct fab_bytes *out)
{
    bool **wanted = calloc((size_t)blob->n_planes + 1, sizeof(bool *));
    struct pmixfab_plane plane;
    uint32_t n = 0;
    int rc = wanted == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    for (uint32_t p = 0; rc == PMIXFAB_OK && p < blob->n_planes; p++) {
        rc = pmixfab_plane(blob->planes[p], &plane);
        if (rc == PMIXFAB_OK && (wanted[p] = calloc((size_t)plane.n_hosts + 1, sizeof(bool))) == NULL)
            rc = PMIXFAB_ERR_NOMEM;
    }
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n_hosts; i++)
        rc = blob_mark(blob, &hosts[i], wanted);
    for (uint32_t p = 0; rc == PMIXFAB_OK && p < blob->n_planes; p++)
        n += wanted[p][0];
    fab_bytes_put(out, n, 4);
    for (uint32_t p = 0; rc == PMIXFAB_OK && p < blob->n_planes; p++)
        if (wanted[p][0])
            rc = fab_excerpt_write(blob->planes[p], wanted[p] + 1, out);
    for (uint32_t p = 0; wanted != NULL && p < blob->n_planes; p++)
        free(wanted[p]);
    free(wanted);
    return rc;
}

/* The secret comes last: a buffer that grows leaves its old content in freed memory. */
int fab_blob_write(const struct fab_blob *blob, const struct fab_blob_hosts *hosts, uint32_t n_hosts,
                   struct fab_bytes *out)
{
    static const uint8_t no_secret[FAB_BLOB_SECRET];
    *out = (struct fab_bytes){.n = 0};
    fab_bytes_more(out, FRAME_HEAD);
    blob_put_text(out, blob->nspace);
    blob_put_text(out, blob->id);
    blob_put_text(out, blob->plane);
    blob_put_endpoints(out, blob);
    fab_bytes_put(out, blob->has_secret, 1);
    const uint32_t secret = out->n;
    fab_bytes_add(out, no_secret, blob->has_secret ? FAB_BLOB_SECRET : 0);
    blob_put_texts(out, blob->envs, blob->n_envs);
    blob_put_texts(out, blob->parents, blob->n_parents);
    int rc = blob_put_planes(blob, hosts, n_hosts, out);
    if (rc == PMIXFAB_OK && out->failed)
        rc = PMIXFAB_ERR_NOMEM;
    if (rc == PMIXFAB_OK && out->n > FAB_BLOB_MAX)
        rc = PMIXFAB_ERR_RANGE;
    if (rc == PMIXFAB_OK) {
        if (blob->has_secret)
            memcpy(out->at + secret, blob->secret, FAB_BLOB_SECRET);
        frame_seal(&blob_frame, out->at, out->n);
    }
    return rc;
}

/* Read a text of the frame; NULL: invalid. */
static const char *blob_get_text(struct frame *in)
{
    const size_t length = (size_t)frame_get(in, 4);
    const char *text = (const char *)frame_bytes(in, length + 1);
    return text != NULL && strnlen(text, length + 1) == length ? text : NULL;
}

/* Each text takes at least 5 bytes. */
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

/* Check that planes follow each other, and that the numbers of each are in order without duplicates. */
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

/* Each takes at least 13 bytes. */
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

/* Return whether it is not a valid variable, or not one that the starter may set. */
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
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT, "the launch information is invalid%s%s",
                      why.text[0] != '\0' ? ": " : "", why.text);
    else if (strcmp(out->nspace, nspace) != 0) {
        fab_text_clean(shown, sizeof(shown), out->nspace, strlen(out->nspace), NULL);
        rc = fab_fail(err, PMIXFAB_ERR_CONFLICT, "the launch information is for job %s", shown);
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
