/*
 * blob_write.c - the packet that a starter hands to its nodes:
 *
 *   frame head | namespace | id | plane | endpoints | secret | variables | parents | excerpts
 *
 * A text has its length before it and its end behind it.
 */
#include <stdlib.h>

#include "pmix/launch/blob_format.h"
#include "pmix/launch/places.h"
#include "topo/model/model.h"
#include "topo/snapshot/excerpt.h"

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

/* Which hosts of each plane are meant: wanted[plane][host]. */
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

/* The secret comes last: bytes that grow leave what they were behind. */
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
