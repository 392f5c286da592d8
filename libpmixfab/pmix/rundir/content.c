#include "pmix/rundir/content.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/answers/info.h"
#include "topo/snapshot/reader.h"

static atomic_size_t matrices;

struct rundir_content *rundir_content_new(struct pmixfab *fab, const char *path)
{
    struct rundir_content *content = calloc(1, sizeof(*content));
    char *copy = strdup(path);
    if (content == NULL || copy == NULL || pmixfab_plane(fab, &content->plane) != PMIXFAB_OK) {
        free(content);
        free(copy);
        pmixfab_close(fab);
        return NULL;
    }
    content->fab = fab;
    content->path = copy;
    content->listed = true;
    return content;
}

/* What only users need. */
static void cool_down(struct rundir_content *content)
{
    if (content->info != NULL)
        PMIX_INFO_FREE(content->info, content->ninfo);
    content->ninfo = 0;
    if (content->matrix != NULL)
        atomic_fetch_sub(&matrices, 1);
    pmixfab_matrix_free(content->matrix, content->plane.n_devices);
    content->matrix = NULL;
}

static void free_unneeded(struct rundir_content *content)
{
    if (content->users > 0)
        return;
    cool_down(content);
    if (content->listed || content->pins > 0)
        return;
    pmixfab_close(content->fab);
    free(content->path);
    free(content);
}

static int content_make_info(struct rundir_content *content, const uint16_t *matrix)
{
    const struct fab_info_source source = {.fab = content->fab, .path = content->path, .matrix = matrix};
    return fab_info_all(&source, 0, &content->info, &content->ninfo) == PMIX_SUCCESS ? PMIXFAB_OK
                                                                                     : PMIXFAB_ERR_NOMEM;
}

int rundir_content_use(struct rundir_content *content)
{
    if (content->users == 0) {
        int rc = pmixfab_matrix_alloc(content->fab, 0, &content->matrix);
        if (rc != PMIXFAB_OK)
            return rc;
        if (content->matrix != NULL)
            atomic_fetch_add(&matrices, 1);
        rc = content_make_info(content, content->matrix);
        if (rc != PMIXFAB_OK) {
            cool_down(content);
            return rc;
        }
    }
    content->users++;
    return PMIXFAB_OK;
}

/* The info array points at the matrix, so it is made first: what is written there cannot be taken back. */
static int take_matrix(struct rundir_content *content, struct rundir_content *before)
{
    int rc = content_make_info(content, before->matrix);
    if (rc == PMIXFAB_OK)
        rc = pmixfab_matrix_update(before->fab, content->fab, 0, &before->matrix);
    if (rc != PMIXFAB_OK) {
        cool_down(content);
        return rc;
    }
    content->matrix = before->matrix;
    before->matrix = NULL;
    content->users++;
    return PMIXFAB_OK;
}

int rundir_content_use_instead(struct rundir_content *content, struct rundir_content *before, unsigned users)
{
    bool own = content->users == 0 && before != content && !before->listed && before->users == users &&
               before->matrix != NULL && before->plane.n_devices == content->plane.n_devices;
    if (own && take_matrix(content, before) == PMIXFAB_OK)
        return PMIXFAB_OK;
    return rundir_content_use(content);
}

void rundir_content_release(struct rundir_content *content)
{
    if (content == NULL)
        return;
    content->users--;
    free_unneeded(content);
}

void rundir_content_pin(struct rundir_content *content)
{
    content->pins++;
}

void rundir_content_unpin(struct rundir_content *content)
{
    content->pins--;
    free_unneeded(content);
}

void rundir_content_unlist(struct rundir_content *content)
{
    if (content == NULL)
        return;
    content->listed = false;
    free_unneeded(content);
}

bool rundir_content_same(const struct rundir_content *a, const struct rundir_content *b)
{
    return a->plane.generation == b->plane.generation && a->plane.published == b->plane.published &&
           a->fab->head->content == b->fab->head->content;
}

size_t rundir_content_matrices(void)
{
    return atomic_load(&matrices);
}
