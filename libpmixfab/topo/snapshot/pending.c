#include "topo/snapshot/pending.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/base/array.h"

#define LINE_MAX_SIZE (SNAP_NAME_MAX + 32u)

void fab_pending_clear(struct fab_pending *pending)
{
    free(pending->planes);
    *pending = (struct fab_pending){0};
}

char *fab_pending_text(const struct fab_pending *pending)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL)
        return NULL;
    fprintf(out, "generation %" PRIu64 "\n", pending->generation);
    for (uint32_t i = 0; i < pending->n; i++)
        fprintf(out, "plane %" PRIu32 " %s\n", pending->planes[i].index, pending->planes[i].name);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* Read a line after the first. */
static int pending_add(struct fab_pending *pending, uint32_t *room, const char *line)
{
    struct fab_pending_plane plane = {0};
    int end = 0;

    if (sscanf(line, "plane %" SCNu32 " %63s%n", &plane.index, plane.name, &end) != 2 || line[end] != '\0' ||
        !fab_snapshot_name_ok(plane.name) || pending->n == FAB_PENDING_PLANES)
        return PMIXFAB_ERR_CORRUPT;
    if (!FAB_ARRAY_ROOM(&pending->planes, room, (uint64_t)pending->n + 1))
        return PMIXFAB_ERR_NOMEM;
    pending->planes[pending->n++] = plane;
    return PMIXFAB_OK;
}

static int pending_parse(char *text, struct fab_pending *out)
{
    char *rest = NULL;
    uint32_t room = 0;
    int end = 0, rc = PMIXFAB_OK;
    const char *line = strtok_r(text, "\n", &rest);

    if (line == NULL || sscanf(line, "generation %" SCNu64 "%n", &out->generation, &end) != 1 ||
        line[end] != '\0' || out->generation == 0)
        return PMIXFAB_ERR_CORRUPT;
    while (rc == PMIXFAB_OK && (line = strtok_r(NULL, "\n", &rest)) != NULL)
        rc = pending_add(out, &room, line);
    return rc;
}

int fab_pending_read(int fd, struct fab_pending *out)
{
    const size_t most = (FAB_PENDING_PLANES + 1) * LINE_MAX_SIZE;
    char *text = malloc(most + 1);
    size_t size = 0;
    ssize_t n = 0;
    int rc = PMIXFAB_OK;

    *out = (struct fab_pending){0};
    if (text == NULL)
        return PMIXFAB_ERR_NOMEM;
    while (size < most && ((n = read(fd, text + size, most - size)) > 0 || (n < 0 && errno == EINTR)))
        size += n > 0 ? (size_t)n : 0;
    text[size] = '\0';
    if (n < 0)
        rc = PMIXFAB_ERR_IO;
    else if (n > 0 || strlen(text) != size)
        rc = PMIXFAB_ERR_CORRUPT;
    else
        rc = pending_parse(text, out);
    free(text);
    if (rc != PMIXFAB_OK)
        fab_pending_clear(out);
    return rc;
}
