/*
 * launch_starter.c - PMIx_server_setup_application: the data that the nodes of a job will need, as one blob.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "mca/job/job.h"
#include "mca/pnet/pnet_component.h"
#include "pmix/answers/request.h"
#include "pmix/launch/blob.h"
#include "pmix/launch/job_map.h"
#include "topo/model/model.h"

#include <src/class/pmix_list.h>
#include <src/mca/preg/preg.h>

#define MAX_PARENTS 16

/* The request of the starter. */
struct starter_request {
    const pmix_value_t *nodes, *ranks;
    bool envars, others, all, chosen; /* chosen: it named some of them */
    bool network, secret;
    const char *id, *plane;
    bool plane_required;
    struct pnet_endpoints_wanted endpoints;
    const char *parents[MAX_PARENTS];
    uint32_t n_parents;
};

/* ---- the request ------------------------------------------------------------------------------------ */

static pmix_status_t starter_text(const pmix_info_t *info, const char **out)
{
    if (info->value.type != PMIX_STRING || info->value.data.string == NULL ||
        info->value.data.string[0] == '\0')
        return PMIX_ERR_BAD_PARAM;
    *out = info->value.data.string;
    return PMIX_SUCCESS;
}

static pmix_status_t starter_parent(const pmix_info_t *info, struct starter_request *out)
{
    const char *name = info->value.type == PMIX_PROC && info->value.data.proc != NULL
                           ? info->value.data.proc->nspace
                       : info->value.type == PMIX_STRING ? info->value.data.string
                                                         : NULL;
    if (name == NULL || name[0] == '\0' || out->n_parents == MAX_PARENTS)
        return PMIX_ERR_BAD_PARAM;
    out->parents[out->n_parents++] = name;
    return PMIX_SUCCESS;
}

static pmix_status_t starter_endpoints(const pmix_info_t *info, bool required, struct starter_request *out)
{
    uint64_t number;
    out->endpoints.required |= required;
    if (!fab_request_read_number(&info->value, &number) || number > FAB_BLOB_ENDPOINTS)
        return PMIX_ERR_BAD_PARAM;
    if (PMIX_CHECK_KEY(info, PMIX_ALLOC_FABRIC_ENDPTS))
        out->endpoints.per_process = (uint32_t)number;
    else
        out->endpoints.per_node = (uint32_t)number;
    return PMIX_SUCCESS;
}

/* The fabric manager is not asked for these: if they are required, the request fails. */
static bool starter_cannot(const pmix_info_t *info)
{
    static const char *const keys[] = {PMIX_ALLOC_FABRIC_TYPE, PMIX_ALLOC_FABRIC_QOS, PMIX_ALLOC_BANDWIDTH};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (PMIX_CHECK_KEY(info, keys[i]))
            return true;
    return false;
}

static pmix_status_t starter_parse_network(const pmix_info_t *info, bool required,
                                           struct starter_request *out)
{
    required |= PMIX_INFO_IS_REQUIRED(info);
    if (starter_cannot(info))
        return required ? PMIX_ERR_NOT_SUPPORTED : PMIX_SUCCESS;
    if (PMIX_CHECK_KEY(info, PMIX_ALLOC_FABRIC_ENDPTS) || PMIX_CHECK_KEY(info, PMIX_ALLOC_FABRIC_ENDPTS_NODE))
        return starter_endpoints(info, required, out);
    if (PMIX_CHECK_KEY(info, PMIX_ALLOC_FABRIC_SEC_KEY))
        out->secret = PMIX_INFO_TRUE(info);
    else if (PMIX_CHECK_KEY(info, PMIX_ALLOC_FABRIC_PLANE)) {
        out->plane_required = required;
        return starter_text(info, &out->plane);
    } else if (PMIX_CHECK_KEY(info, PMIX_ALLOC_FABRIC_ID)) {
        pmix_status_t rc = starter_text(info, &out->id);
        return rc == PMIX_SUCCESS && fab_blob_bad_id(out->id) ? PMIX_ERR_BAD_PARAM : rc;
    }
    return PMIX_SUCCESS;
}

static pmix_status_t starter_parse_array(const pmix_info_t *info, struct starter_request *out)
{
    const pmix_data_array_t *array = info->value.data.darray;
    pmix_status_t rc = PMIX_SUCCESS;
    if (info->value.type != PMIX_DATA_ARRAY || array == NULL || array->type != PMIX_INFO)
        return PMIX_ERR_BAD_PARAM;
    out->network = true;
    for (size_t i = 0; rc == PMIX_SUCCESS && i < array->size; i++)
        rc = starter_parse_network((pmix_info_t *)array->array + i, PMIX_INFO_IS_REQUIRED(info), out);
    return rc;
}

static pmix_status_t starter_parse(const pmix_info_t *info, size_t n, struct starter_request *out)
{
    pmix_status_t rc = PMIX_SUCCESS;
    *out = (struct starter_request){.id = "", .plane = ""};
    for (size_t i = 0; rc == PMIX_SUCCESS && i < n; i++) {
        bool *flag = PMIX_CHECK_KEY(&info[i], PMIX_SETUP_APP_ENVARS)      ? &out->envars
                     : PMIX_CHECK_KEY(&info[i], PMIX_SETUP_APP_NONENVARS) ? &out->others
                     : PMIX_CHECK_KEY(&info[i], PMIX_SETUP_APP_ALL)       ? &out->all
                                                                          : NULL;
        if (flag != NULL)
            out->chosen |= *flag = PMIX_INFO_TRUE(&info[i]);
        else if (PMIX_CHECK_KEY(&info[i], PMIX_NODE_MAP))
            out->nodes = &info[i].value;
        else if (PMIX_CHECK_KEY(&info[i], PMIX_PROC_MAP))
            out->ranks = &info[i].value;
        else if (PMIX_CHECK_KEY(&info[i], PMIX_PARENT_ID))
            rc = starter_parent(&info[i], out);
        else if (PMIX_CHECK_KEY(&info[i], PMIX_ALLOC_FABRIC))
            rc = starter_parse_array(&info[i], out);
        else
            rc = starter_parse_network(&info[i], false, out);
    }
    if (out->all || !out->chosen)
        out->envars = out->others = true;
    out->others |= out->network;
    return rc;
}

/* ---- its maps --------------------------------------------------------------------------------------- */

/*
 * A compressed map begins with "blob:", NUL, "component=zlib:", NUL, "size=N:", NUL, and then has N bytes.
 * The library trusts N, and that all of this is there.
 */
static bool starter_map_fits(const pmix_value_t *value)
{
    const char *at = value->data.bo.bytes, *end = at + value->data.bo.size;
    for (int part = 0; part < 3; part++) {
        const char *next = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        if (next == NULL || (part == 2 && (strncmp(at, "size=", 5) != 0 ||
                                           strtoul(at + 5, NULL, 10) > (unsigned long)(end - next - 1))))
            return false;
        at = next + 1;
    }
    return true;
}

/* From 7 on a map is encoded in this form, and the library gives back the plain list. */
#ifdef PMIX_REGEX2
static char **starter_map_7(const pmix_value_t *value, char **(*read)(const char *))
{
    char *text = NULL;
    if (value->data.regex2 == NULL ||
        pmix_preg.parse_regex(value->data.regex2, NULL, 0, &text) != PMIX_SUCCESS || text == NULL)
        return NULL;
    char **list = read(text);
    free(text);
    return list;
}
#endif

/* Return whether a map has a form that starter_map() reads. A later library may have others. */
static bool starter_map_known(const pmix_value_t *value)
{
#ifdef PMIX_REGEX2
    if (value != NULL && value->type == PMIX_REGEX2)
        return true;
#endif
    return value == NULL || value->type == PMIX_REGEX || value->type == PMIX_STRING;
}

/* Return the names of a map, or its lists of ranks; NULL: invalid. */
static char **starter_map(const pmix_value_t *value, char **(*read)(const char *),
                          pmix_status_t (*library)(const char *, char ***))
{
#ifdef PMIX_REGEX2
    if (value->type == PMIX_REGEX2)
        return starter_map_7(value, read);
#endif
    const bool regex = value->type == PMIX_REGEX;
    const char *text = regex ? value->data.bo.bytes : value->type == PMIX_STRING ? value->data.string : NULL;
    char **list = NULL;
    if (text == NULL || (regex && strnlen(text, value->data.bo.size) == value->data.bo.size))
        return NULL;
    if (strncmp(text, "blob:", 5) != 0)
        return read(text);
    return regex && starter_map_fits(value) && library(text, &list) == PMIX_SUCCESS ? list : NULL;
}

static pmix_status_t starter_maps(const struct starter_request *request, struct fab_job_map *map,
                                  struct fab_err *err)
{
    char **nodes =
        request->nodes == NULL ? NULL : starter_map(request->nodes, fab_map_nodes, pmix_preg.parse_nodes);
    char **ranks =
        request->ranks == NULL ? NULL : starter_map(request->ranks, fab_map_ranks, pmix_preg.parse_procs);
    int rc = nodes == NULL || ranks == NULL
                 ? fab_fail(err, PMIXFAB_ERR_INVAL, "PMIX_NODE_MAP or PMIX_PROC_MAP is missing or invalid")
                 : fab_job_map_parse(nodes, ranks, map, err);
    fab_map_free(nodes);
    fab_map_free(ranks);
    return rc == PMIXFAB_OK ? PMIX_SUCCESS : rc == PMIXFAB_ERR_NOMEM ? PMIX_ERR_NOMEM : PMIX_ERR_BAD_PARAM;
}

/* ---- the fabric's data ------------------------------------------------------------------------------ */

/* Find the plane that is requested by name. */
static pmix_status_t starter_plane(const struct starter_request *request, struct fab_blob *blob)
{
    struct pmixfab_plane plane;
    for (uint32_t p = 0; p < blob->n_planes; p++)
        if (pmixfab_plane(blob->planes[p], &plane) == PMIXFAB_OK && strcmp(plane.name, request->plane) == 0) {
            blob->plane = request->plane;
            return PMIX_SUCCESS;
        }
    return request->plane_required ? PMIX_ERR_NOT_FOUND : PMIX_SUCCESS;
}

/* Add the parents that this server has; their places are in its own maps. */
static uint32_t starter_parents(const struct starter_request *request, struct fab_job_map *maps,
                                const char **names)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < request->n_parents; i++) {
        const pmix_namespace_t *parent = mca_job_find(request->parents[i]);
        if (parent == NULL || parent->nprocs == 0)
            pnet_say("launch: parent %s is unknown here: its data are left out", request->parents[i]);
        else if (mca_job_map(parent, &maps[n]))
            names[n++] = request->parents[i];
        else
            fab_job_map_free(&maps[n]);
    }
    return n;
}

static pmix_status_t starter_write(pmix_namespace_t *job, const struct starter_request *request,
                                   struct fab_blob *blob, struct fab_bytes *out)
{
    struct fab_job_map maps[1 + MAX_PARENTS] = {0};
    struct fab_blob_hosts hosts[1 + MAX_PARENTS];
    const char *parents[MAX_PARENTS];
    struct fab_err err = {""};
    struct rundir_planes planes = {.of = NULL};
    pmix_status_t rc = PMIX_SUCCESS;
    uint32_t n = 0;
    if (!starter_map_known(request->nodes) || !starter_map_known(request->ranks))
        pnet_say(
            "launch: %s: PMIX_NODE_MAP or PMIX_PROC_MAP has a form that is not known here: its hosts are "
            "left out",
            blob->nspace);
    else if (request->nodes != NULL || request->ranks != NULL)
        rc = starter_maps(request, &maps[0], &err);
    if (rc == PMIX_SUCCESS && request->others && pnet_launch_params.launch) {
        pnet_launch_planes(&planes, &err);
        blob->planes = planes.planes;
        blob->n_planes = planes.n;
        blob->parents = parents;
        blob->n_parents = n = starter_parents(request, &maps[1], parents);
    }
    if (rc == PMIX_SUCCESS && request->plane[0] != '\0')
        rc = starter_plane(request, blob);
    if (rc == PMIX_SUCCESS)
        rc = pnet_launch_endpoints(job, &request->endpoints, &maps[0], blob, &err);
    if (rc == PMIX_SUCCESS) {
        for (uint32_t i = 0; i <= n; i++)
            hosts[i] = (struct fab_blob_hosts){maps[i].hosts, maps[i].n_hosts};
        int done = fab_blob_write(blob, hosts, n + 1, out);
        rc = done == PMIXFAB_OK ? PMIX_SUCCESS : PMIX_ERR_NOMEM;
        pnet_say("launch: %s: %u nodes, %u planes, %u variables: %u bytes: %s", blob->nspace, maps[0].n_hosts,
                 blob->n_planes, blob->n_envs, out->n, PMIx_Error_string(rc));
    } else {
        pnet_say("launch: %s: %s: %s", blob->nspace, PMIx_Error_string(rc), err.text);
    }
    if (planes.of != NULL)
        rundir_planes_put(&planes);
    for (uint32_t i = 0; i <= n; i++)
        fab_job_map_free(&maps[i]);
    free((void *)blob->endpoints);
    blob->endpoints = NULL;
    blob->planes = NULL; /* the planes are released */
    blob->parents = NULL;
    return rc;
}

/* ---- the call --------------------------------------------------------------------------------------- */

/* Use the kernel's generator only. */
static pmix_status_t starter_secret(struct fab_blob *blob)
{
    ssize_t got;
    do
        got = getrandom(blob->secret, sizeof(blob->secret), 0);
    while (got < 0 && errno == EINTR);
    blob->has_secret = got == (ssize_t)sizeof(blob->secret);
    return blob->has_secret ? PMIX_SUCCESS : PMIX_ERR_NOT_AVAILABLE;
}

static pmix_status_t starter_envars(struct fab_blob *blob)
{
    const char *const patterns[] = {pnet_launch_params.forward, getenv("PMIX_MCA_forward_envars")};
    for (size_t i = 0; i < 2; i++)
        if (fab_forward_wrong(patterns[i])) {
            pnet_say("launch: \"%s\": a '*' may only end a pattern, and a name has no '='", patterns[i]);
            return PMIX_ERR_BAD_PARAM;
        }
    blob->envs = fab_forward_harvest(environ, patterns, 2, pnet_launch_params.exclude, &blob->n_envs);
    return blob->envs != NULL ? PMIX_SUCCESS : PMIX_ERR_NOMEM;
}

static pmix_status_t starter_append(pmix_list_t *list, struct fab_bytes *bytes)
{
    pmix_kval_t *kv = PMIX_NEW(pmix_kval_t);
    if (kv == NULL || (kv->key = strdup(FAB_BLOB_KEY)) == NULL ||
        (kv->value = calloc(1, sizeof(*kv->value))) == NULL) {
        if (kv != NULL)
            PMIX_RELEASE(kv);
        return PMIX_ERR_NOMEM;
    }
    kv->value->type = PMIX_BYTE_OBJECT;
    kv->value->data.bo = (pmix_byte_object_t){.bytes = (char *)bytes->at, .size = bytes->n};
    *bytes = (struct fab_bytes){.n = 0};
    pmix_list_append(list, &kv->super);
    return PMIX_SUCCESS;
}

pmix_status_t pnet_launch_allocate(pmix_namespace_t *job, pmix_info_t *info, size_t n, pmix_list_t *list)
{
    struct starter_request request;
    struct fab_blob blob = {.nspace = job->nspace, .id = "", .plane = ""};
    struct fab_bytes bytes = {.n = 0};
    pmix_status_t rc = starter_parse(info, info == NULL ? 0 : n, &request);
    blob.id = request.id;
    if (rc == PMIX_SUCCESS && request.secret)
        rc = starter_secret(&blob);
    if (rc == PMIX_SUCCESS && request.envars)
        rc = starter_envars(&blob);
    if (rc == PMIX_SUCCESS)
        rc = starter_write(job, &request, &blob, &bytes);
    if (rc == PMIX_SUCCESS)
        rc = starter_append(list, &bytes);
    if (bytes.at != NULL)
        explicit_bzero(bytes.at, bytes.n);
    free(bytes.at);
    free((void *)blob.envs);
    explicit_bzero(blob.secret, sizeof(blob.secret));
    return rc;
}
