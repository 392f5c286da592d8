/* reader.c - open and close snapshots. */
#include "topo/snapshot/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topo/base/library_log.h"

/* Make a handle for checked bytes; NULL without memory. */
static struct pmixfab *handle_on(const void *bytes)
{
    struct pmixfab *fab = calloc(1, sizeof(*fab));

    if (fab == NULL)
        return NULL;
    fab->meta = snap_meta(bytes);
    fab->costs = (struct fab_cost_view){
        .n_devices = fab->meta->n_devices,
        .n_edges = fab->meta->n_edges,
        .edge = snap_section(bytes, SNAP_EDGE),
        .access = snap_section(bytes, SNAP_ACCESS),
        .host = snap_section(bytes, SNAP_HOST),
        .dist = snap_section(bytes, SNAP_DIST),
        .places = fab->meta->n_places > 0 ? snap_section(bytes, SNAP_PLACES) : NULL,
    };
    fab->devices = snap_section(bytes, SNAP_DEVICES);
    fab->hosts = snap_section(bytes, SNAP_HOSTS);
    fab->switches = snap_section(bytes, SNAP_SWITCHES);
    fab->links = snap_section(bytes, SNAP_LINKS);
    fab->others = snap_section(bytes, SNAP_OTHERS);
    fab->logical = snap_section(bytes, SNAP_LOGICAL);
    fab->physical = snap_section(bytes, SNAP_PHYSICAL);
    fab->group_start = snap_section(bytes, SNAP_GROUP_START);
    fab->group_members = snap_section(bytes, SNAP_GROUP_MEMBER);
    fab->by_node = snap_section(bytes, SNAP_BY_NODE);
    fab->by_port = snap_section(bytes, SNAP_BY_PORT);
    fab->strings = snap_section(bytes, SNAP_STRINGS);
    if (fab->meta->n_facts > 0) {
        fab->fact_at = snap_section(bytes, SNAP_FACT_AT);
        fab->facts = snap_section(bytes, SNAP_FACTS);
    }
    fab->head = snap_head(bytes);
    if (fab->head->version > 3) {
        fab->group_names = snap_section(bytes, SNAP_GROUP_NAME);
        fab->rails = snap_section(bytes, SNAP_RAILS);
        fab->strays = snap_section(bytes, SNAP_STRAYS);
        fab->other_kinds = snap_section(bytes, SNAP_OTHER_KINDS);
    }
    return fab;
}

int fab_snapshot_borrow(const void *bytes, size_t size, struct pmixfab **out, struct fab_err *err)
{
    if (out == NULL)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "no place for the handle given");
    *out = NULL;
    int rc = fab_snapshot_check(bytes, size, err);
    if (rc != 0)
        return rc;
    *out = handle_on(bytes);
    return *out != NULL ? PMIXFAB_OK
                        : fab_fail(err, PMIXFAB_ERR_NOMEM, "no memory for a handle on a snapshot");
}

static int code_of_errno(int number)
{
    switch (number) {
    case ENOENT:
    case ENOTDIR:
        return PMIXFAB_ERR_NOTFOUND;
    case EACCES:
    case EPERM:
        return PMIXFAB_ERR_PERM;
    case ENOMEM:
        return PMIXFAB_ERR_NOMEM;
    default:
        return PMIXFAB_ERR_IO;
    }
}

/* Map a whole regular file; an empty one, which cannot be mapped, is PMIXFAB_ERR_TRUNCATED. */
static int map_file(const char *path, void **map, size_t *size, struct fab_err *err)
{
    struct stat st;
    int rc = PMIXFAB_OK;
    /* without O_NONBLOCK, opening a FIFO would wait for its writer */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0 || fstat(fd, &st) != 0) {
        rc = fab_fail(err, code_of_errno(errno), "%s: cannot be opened: %s", path, strerror(errno));
        goto cleanup;
    }
    if (!S_ISREG(st.st_mode)) {
        rc = fab_fail(err, PMIXFAB_ERR_FOREIGN, "%s: not a regular file, so not a snapshot", path);
        goto cleanup;
    }
    if (st.st_size == 0) {
        rc = fab_fail(err, PMIXFAB_ERR_TRUNCATED, "%s: empty", path);
        goto cleanup;
    }
    *size = (size_t)st.st_size;
    *map = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (*map == MAP_FAILED) {
        *map = NULL;
        rc = fab_fail(err, code_of_errno(errno), "%s: cannot be mapped: %s", path, strerror(errno));
    }

cleanup:
    if (fd >= 0)
        close(fd);
    return rc;
}

int fab_reader_open(const char *path, struct pmixfab **out, struct fab_err *err)
{
    struct fab_err why = {""};
    void *map = NULL;
    size_t size = 0;

    *out = NULL;
    int rc = map_file(path, &map, &size, err);
    if (rc != 0)
        return rc;
    struct pmixfab *fab = NULL;
    rc = fab_snapshot_borrow(map, size, &fab, &why);
    if (fab == NULL) {
        munmap(map, size);
        return fab_fail(err, rc, "%s: %s", path, why.text);
    }
    fab->map = map;
    *out = fab;
    return PMIXFAB_OK;
}

int pmixfab_open_file(const char *path, struct pmixfab **out)
{
    struct fab_err err = {""};

    if (out == NULL)
        return PMIXFAB_ERR_INVAL;
    *out = NULL;
    if (path == NULL || path[0] == '\0')
        return PMIXFAB_ERR_INVAL;
    int rc = fab_reader_open(path, out, &err);
    if (rc != 0)
        fab_log(PMIXFAB_LOG_ERROR, "%s", err.text);
    return rc;
}

int pmixfab_open_memory(const void *bytes, size_t size, struct pmixfab **out)
{
    struct fab_err err = {""};

    if (out == NULL)
        return PMIXFAB_ERR_INVAL;
    *out = NULL;
    if (bytes == NULL)
        return PMIXFAB_ERR_INVAL;
    if (size == 0) {
        fab_log(PMIXFAB_LOG_ERROR, "snapshot in memory: empty");
        return PMIXFAB_ERR_TRUNCATED;
    }
    void *copy = malloc(size);
    if (copy == NULL)
        return PMIXFAB_ERR_NOMEM;
    memcpy(copy, bytes, size);
    struct pmixfab *fab = NULL;
    int rc = fab_snapshot_borrow(copy, size, &fab, &err);
    if (fab == NULL) {
        fab_log(PMIXFAB_LOG_ERROR, "snapshot in memory: %s", err.text);
        free(copy);
        return rc;
    }
    fab->heap = copy;
    *out = fab;
    return PMIXFAB_OK;
}

int pmixfab_bytes(const struct pmixfab *fab, const void **bytes, size_t *size)
{
    if (fab == NULL || bytes == NULL || size == NULL)
        return PMIXFAB_ERR_INVAL;
    *bytes = fab->head;
    *size = fab->head->size;
    return PMIXFAB_OK;
}

void pmixfab_close(struct pmixfab *fab)
{
    if (fab == NULL)
        return;
    if (fab->map != NULL)
        munmap(fab->map, fab->head->size);
    free(fab->heap);
    free(fab);
}
