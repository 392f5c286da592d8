/* fabric.c - complete pmix_fabric_t objects: with the matrix, which is not sent over the connection. */
#include <pmix_common.h>
#include <pthread.h>
#include <stdlib.h>
#include <utlist.h>

#include "pmix/answers/info.h"
#include "pmix/relay/query.h"

/* The data of one registered object; its address is the object's module. */
struct registration {
    struct registration *prev, *next;
    struct pmixfab *fab;
    uint16_t *matrix;
    uint32_t n_devices;
};

/* All registrations of this process, so that a foreign object is recognised without trusting its content. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct registration *list;

static struct registration *fabric_registration(const pmix_fabric_t *fabric)
{
    struct registration *r = NULL;
    if (fabric == NULL || fabric->module == NULL)
        return NULL;
    pthread_mutex_lock(&list_lock);
    DL_FOREACH(list, r)
    {
        if (r == fabric->module)
            break;
    }
    pthread_mutex_unlock(&list_lock);
    return r;
}

static void free_content(struct registration *r)
{
    pmixfab_matrix_free(r->matrix, r->n_devices);
    pmixfab_close(r->fab);
    r->matrix = NULL;
    r->fab = NULL;
}

/*
 * Fill a registration from a snapshot, which it takes over (also on error), and make the object's info array.
 */
static int load_content(struct registration *r, struct pmixfab *fab, pmix_info_t **info, size_t *n)
{
    struct pmixfab_plane plane;
    *r = (struct registration){.fab = fab};
    int rc = pmixfab_plane(fab, &plane);
    if (rc == PMIXFAB_OK) {
        r->n_devices = plane.n_devices;
        rc = pmixfab_matrix_alloc(fab, 0, &r->matrix);
    }
    if (rc == PMIXFAB_OK) {
        const struct fab_info_source source = {.fab = fab, .matrix = r->matrix};
        rc = fab_error_of(fab_info_all(&source, 0, info, n));
    }
    if (rc != PMIXFAB_OK)
        free_content(r);
    return rc;
}

int pmixfab_register(struct pmix_fabric_s *fabric, const struct pmix_info *directives, size_t ndirs)
{
    struct pmixfab *fab = NULL;
    struct pmixfab_plane plane;
    pmix_info_t *info = NULL;
    size_t n = 0;
    if (fabric == NULL || fabric_registration(fabric) != NULL)
        return PMIXFAB_ERR_INVAL;
    int rc = pmixfab_open_pmix(directives, ndirs, &fab);
    if (rc != PMIXFAB_OK)
        return rc;
    struct registration *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        pmixfab_close(fab);
        return PMIXFAB_ERR_NOMEM;
    }
    rc = load_content(r, fab, &info, &n);
    if (rc != PMIXFAB_OK) {
        free(r);
        return rc;
    }
    pmixfab_plane(fab, &plane);
    fabric->index = plane.index;
    fabric->info = info;
    fabric->ninfo = n;
    fabric->module = r;
    pthread_mutex_lock(&list_lock);
    DL_APPEND(list, r);
    pthread_mutex_unlock(&list_lock);
    return PMIXFAB_OK;
}

/* Compare the object with the server's present data. Requests two numbers only. */
static int is_current(const struct registration *r, const pmix_info_t *index, int *current)
{
    static const char *const keys[] = {PMIXFAB_KEY_GENERATION, FAB_KEY_PUBLISHED, NULL};
    struct fab_answer *answer;
    struct pmixfab_plane plane;
    int rc = fab_query(keys, index, 1, &answer);
    if (rc != PMIXFAB_OK)
        return rc;
    const pmix_value_t *generation = fab_answer_value(answer, PMIXFAB_KEY_GENERATION, PMIX_UINT64);
    const pmix_value_t *published = fab_answer_value(answer, FAB_KEY_PUBLISHED, PMIX_INT64);
    if (generation == NULL || published == NULL)
        rc = PMIXFAB_ERR_UNSUPPORTED;
    else if ((rc = pmixfab_plane(r->fab, &plane)) == PMIXFAB_OK)
        *current = plane.generation == generation->data.uint64 && plane.published == published->data.int64;
    fab_answer_free(answer);
    return rc;
}

/*
 * Replace the content by that of a snapshot, which is taken over (also on error), with the same number of
 * devices. The matrix, which belongs to this object only, is changed in place. The info array points at it
 * and is made first, because the writes to the matrix cannot be undone.
 */
static int renew_content(struct registration *r, struct pmixfab *fab, pmix_info_t **info, size_t *n)
{
    const struct fab_info_source source = {.fab = fab, .matrix = r->matrix};
    int rc = fab_error_of(fab_info_all(&source, 0, info, n));
    if (rc == PMIXFAB_OK && (rc = pmixfab_matrix_update(r->fab, fab, 0, &r->matrix)) != PMIXFAB_OK)
        PMIX_INFO_FREE(*info, *n);
    pmixfab_close(rc == PMIXFAB_OK ? r->fab : fab);
    if (rc == PMIXFAB_OK)
        r->fab = fab;
    return rc;
}

/* As above, for another number of devices. */
static int replace_content(struct registration *r, struct pmixfab *fab, pmix_info_t **info, size_t *n)
{
    struct registration fresh;
    int rc = load_content(&fresh, fab, info, n);
    if (rc != PMIXFAB_OK)
        return rc;
    free_content(r);
    r->fab = fresh.fab;
    r->matrix = fresh.matrix;
    r->n_devices = fresh.n_devices;
    return PMIXFAB_OK;
}

int pmixfab_update(struct pmix_fabric_s *fabric)
{
    struct registration *r = fabric_registration(fabric);
    struct pmixfab *fab = NULL;
    struct pmixfab_plane plane;
    pmix_info_t index, *info = NULL;
    size_t n = 0;
    int current = 0;
    if (r == NULL)
        return PMIXFAB_ERR_INVAL;
    PMIX_INFO_LOAD(&index, PMIX_FABRIC_INDEX, &fabric->index, PMIX_SIZE);
    int rc = is_current(r, &index, &current);
    if (rc == PMIXFAB_OK && !current)
        rc = pmixfab_open_pmix(&index, 1, &fab);
    PMIX_INFO_DESTRUCT(&index);
    if (rc != PMIXFAB_OK || current)
        return rc;
    pmixfab_plane(fab, &plane);
    if (plane.n_devices == r->n_devices)
        rc = renew_content(r, fab, &info, &n);
    else
        rc = replace_content(r, fab, &info, &n);
    if (rc != PMIXFAB_OK)
        return rc; /* the object is unchanged */
    PMIX_INFO_FREE(fabric->info, fabric->ninfo);
    fabric->info = info;
    fabric->ninfo = n;
    return PMIXFAB_OK;
}

int pmixfab_deregister(struct pmix_fabric_s *fabric)
{
    struct registration *r = fabric_registration(fabric);
    if (r == NULL)
        return PMIXFAB_ERR_INVAL;
    pthread_mutex_lock(&list_lock);
    DL_DELETE(list, r);
    pthread_mutex_unlock(&list_lock);
    free_content(r);
    free(r);
    PMIX_INFO_FREE(fabric->info, fabric->ninfo);
    fabric->ninfo = 0;
    fabric->index = 0;
    fabric->module = NULL;
    return PMIXFAB_OK;
}

const struct pmixfab *pmixfab_of(const struct pmix_fabric_s *fabric)
{
    const struct registration *r = fabric_registration(fabric);
    return r == NULL ? NULL : r->fab;
}
