/*
 * node_state.c - the file in which a node keeps its last report.
 *
 * The file has these fields after the head (topo/base/frame.h):
 * - failed sources u16, unknown sources u16
 * - for the last acknowledgement: digest u64, acked u64, failed u16, unknown u16
 * - the report as encoded by fab_report_encode().
 */
#include "fabricd/node/node_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/file_io.h"
#include "topo/base/frame.h"

#define FIXED (FRAME_HEAD + 2 + 2 + 8 + 8 + 2 + 2)

static const struct frame_kind kind = {{'f', 'a', 'b', 'k', 'e', 'e', 'p', '\n'},
                                       1,
                                       FIXED + FAB_REPORT_MAX_SIZE,
                                       "the report from before the restart"};

/* ---- writing ------------------------------------------------------------------------------------ */

static int node_state_encode(const struct node_state *state, void **bytes, size_t *size)
{
    void *body = NULL;
    size_t n = 0;
    int rc = fab_report_encode(&state->report, &body, &n);
    uint8_t *start = rc == PMIXFAB_OK ? malloc(FIXED + n) : NULL;
    *bytes = start;
    *size = FIXED + n;
    if (start != NULL) {
        uint8_t *at = frame_put(start + FRAME_HEAD, state->failed, 2);
        at = frame_put(at, state->unknown, 2);
        at = frame_put(at, state->announced.digest, 8);
        at = frame_put(at, state->announced.acked, 8);
        at = frame_put(at, state->announced.failed, 2);
        at = frame_put(at, state->announced.unknown, 2);
        memcpy(at, body, n);
        frame_seal(&kind, start, *size);
    }
    free(body);
    return rc != PMIXFAB_OK ? rc : start == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
}

int node_state_write(const char *rundir, const struct node_state *state, struct fab_err *err)
{
    char path[4096], beside[4096];
    void *bytes = NULL;
    size_t size;
    snprintf(path, sizeof(path), "%s/%s", rundir, NODE_STATE_FILE);
    snprintf(beside, sizeof(beside), "%s/.%s.new", rundir, NODE_STATE_FILE);
    int rc = node_state_encode(state, &bytes, &size);
    if (rc != PMIXFAB_OK) {
        fab_fail(err, rc, "%s: cannot be written: %s", path, pmixfab_strerror(rc));
    } else {
        int failed = file_replace(path, beside, bytes, size);
        if (failed != 0)
            rc = fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be written: %s", path, strerror(failed));
    }
    free(bytes);
    return rc;
}

/* ---- reading ------------------------------------------------------------------------------------ */

static int node_state_decode(const uint8_t *bytes, size_t size, const char *host, struct node_state *out,
                             struct fab_err *err)
{
    struct frame in;
    int rc = frame_open(&kind, bytes, size, &in, err);
    if (rc != PMIXFAB_OK)
        return rc;
    out->failed = (uint32_t)frame_get(&in, 2);
    out->unknown = (uint32_t)frame_get(&in, 2);
    out->announced.digest = frame_get(&in, 8);
    out->announced.acked = frame_get(&in, 8);
    out->announced.failed = (uint32_t)frame_get(&in, 2);
    out->announced.unknown = (uint32_t)frame_get(&in, 2);
    size_t left = frame_left(&in);
    rc = fab_report_decode(frame_bytes(&in, left), left, &out->report, err);
    if (rc == PMIXFAB_OK && strcmp(out->report.host, host) != 0)
        rc = fab_fail(err, PMIXFAB_ERR_CONFLICT, "it belongs to host %s", out->report.host);
    return rc;
}

int node_state_read(const char *rundir, const char *host, struct node_state *out, struct fab_err *err)
{
    struct fab_err why = {""};
    char path[4096];
    void *bytes;
    size_t size;
    *out = (struct node_state){.failed = 0};
    fab_report_init(&out->report);
    snprintf(path, sizeof(path), "%s/%s", rundir, NODE_STATE_FILE);
    /* The decoder rejects a file that is one byte too long. */
    int failed = file_read(path, kind.max + 1, &bytes, &size);
    if (failed == ENOENT)
        return PMIXFAB_OK;
    int rc = failed != 0
                 ? fab_fail(&why, PMIXFAB_ERR_IO, "%s", failed == EINVAL ? "not a file" : strerror(failed))
                 : node_state_decode(bytes, size, host, out, &why);
    free(bytes);
    if (rc == PMIXFAB_OK)
        return PMIXFAB_OK;
    fab_report_destroy(&out->report);
    *out = (struct node_state){.failed = 0};
    fab_report_init(&out->report);
    return fab_fail(err, rc, "%s is skipped: %s", path, why.text);
}
