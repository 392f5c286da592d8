/*
 * scheduler.c - places jobs where their nodes are near to each other, also after the fabric has changed. With
 * nothing but the PMIx library, whose components answer from the run directory of this host's fabricd.
 *
 *   scheduler NODE...
 *
 * Each line that it reads is a job: how many of these nodes it needs. The answer is a line with their names.
 */
#include <limits.h>
#include <pmix.h>
#include <pmix_server.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_ROW  SIZE_MAX   /* the fabric does not know the node, or it is down */
#define NO_PATH UINT16_MAX /* so the matrix says it */

static pmix_fabric_t fabric;
static atomic_int changed = 1;
static size_t n_nodes;
static struct node {
    const char *name;
    size_t row; /* of the matrix */
    int cost;   /* from the one that is tried */
} * nodes, *tried, *best;

static void check(const char *what, pmix_status_t status)
{
    if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED)
        return;
    fprintf(stderr, "scheduler: %s: %s\n", what, PMIx_Error_string(status));
    exit(1);
}

static const pmix_value_t *find(const pmix_info_t *info, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (PMIX_CHECK_KEY(&info[i], key))
            return &info[i].value;
    check(key, PMIX_ERR_NOT_FOUND);
    return NULL;
}

static void on_change(size_t handler, pmix_status_t what, const pmix_proc_t *source, pmix_info_t info[],
                      size_t n, pmix_info_t results[], size_t n_results,
                      pmix_event_notification_cbfunc_fn_t done, void *with)
{
    (void)handler, (void)source, (void)info, (void)n, (void)results, (void)n_results;
    if (what == PMIX_FABRIC_UPDATED)
        changed = 1;
    puts(PMIx_Error_string(what));
    done(PMIX_SUCCESS, NULL, 0, NULL, NULL, with);
}

/* The row of a node's first device that is up. An answer of another generation than the matrix: a change is
 * near. */
static size_t row_of(const char *node)
{
    char *keys[] = {PMIX_FABRIC_DEVICES, "pmixfab.generation", NULL};
    pmix_info_t which[3], *told = NULL;
    pmix_query_t query = {.keys = keys, .qualifiers = which, .nqual = 3};
    const char *plane = find(fabric.info, fabric.ninfo, PMIX_FABRIC_PLANE)->data.string;
    size_t n = 0, row = NO_ROW;
    PMIX_INFO_LOAD(&which[0], PMIX_QUERY_REFRESH_CACHE, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&which[1], PMIX_HOSTNAME, node, PMIX_STRING);
    PMIX_INFO_LOAD(&which[2], PMIX_FABRIC_PLANE, plane, PMIX_STRING);
    if (PMIx_Query_info(&query, 1, &told, &n) == PMIX_SUCCESS &&
        find(told, n, keys[1])->data.uint64 == find(fabric.info, fabric.ninfo, keys[1])->data.uint64) {
        const pmix_data_array_t *devices = find(told, n, keys[0])->data.darray;
        for (size_t i = devices->size; i-- > 0;) {
            const pmix_data_array_t *device = ((pmix_info_t *)devices->array)[i].value.data.darray;
            if (find(device->array, device->size, PMIX_FABRIC_DEVICE_STATE)->data.linkstate != PMIX_LINK_DOWN)
                row = find(device->array, device->size, PMIX_FABRIC_DEVICE_INDEX)->data.uint32;
        }
    }
    PMIX_INFO_FREE(told, n);
    for (size_t i = 0; i < 3; i++)
        PMIX_INFO_DESTRUCT(&which[i]);
    return row;
}

static int compare(const void *a, const void *b)
{
    const struct node *x = a, *y = b;
    return x->cost != y->cost ? x->cost - y->cost : strcmp(x->name, y->name);
}

/* A node and those that are nearest to it: of all such sets the one with the least costs. */
static void place(size_t count)
{
    const uint16_t *costs = find(fabric.info, fabric.ninfo, PMIX_FABRIC_COST_MATRIX)->data.ptr;
    const size_t size = find(fabric.info, fabric.ninfo, PMIX_FABRIC_NUM_DEVICES)->data.size;
    long sum, least = LONG_MAX;
    for (size_t at = 0; count > 0 && count <= n_nodes && at < n_nodes; at++) {
        for (size_t i = 0; i < n_nodes; i++) {
            const int known = nodes[at].row != NO_ROW && nodes[i].row != NO_ROW;
            tried[i] = nodes[i];
            tried[i].cost = known ? costs[nodes[at].row * size + nodes[i].row] : NO_PATH;
        }
        qsort(tried, n_nodes, sizeof(*tried), compare);
        sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += tried[i].cost;
        if (tried[count - 1].cost != NO_PATH && sum < least) {
            least = sum;
            memcpy(best, tried, count * sizeof(*best));
        }
    }
    if (least == LONG_MAX)
        printf("no place");
    for (size_t i = 0; least != LONG_MAX && i < count; i++)
        printf("%s%s", i > 0 ? " " : "", best[i].name);
    printf("\n");
}

/* Until here the matrix stays as it was, however often the fabric changes. Where it is gone no job has a
 * place until it is back. */
static void look_at_fabric(void)
{
    const pmix_status_t rc = PMIx_Fabric_update(&fabric);
    const int there = rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED;
    if (!there)
        fprintf(stderr, "scheduler: PMIx_Fabric_update: %s\n", PMIx_Error_string(rc));
    for (size_t i = 0; i < n_nodes; i++)
        nodes[i].row = there ? row_of(nodes[i].name) : NO_ROW;
}

int main(int argc, char **argv)
{
    static pmix_server_module_t none;
    pmix_status_t both[] = {PMIX_FABRIC_UPDATE_PENDING, PMIX_FABRIC_UPDATED};
    pmix_info_t info;
    char line[64];
    n_nodes = (size_t)argc - 1;
    nodes = calloc(3 * n_nodes + 1, sizeof(*nodes));
    if (nodes == NULL)
        check("nodes", PMIX_ERR_OUT_OF_RESOURCE);
    tried = nodes + n_nodes;
    best = tried + n_nodes;
    for (size_t i = 0; i < n_nodes; i++)
        nodes[i].name = argv[i + 1];
    setvbuf(stdout, NULL, _IOLBF, 0);
    PMIX_INFO_LOAD(&info, PMIX_SERVER_SCHEDULER, NULL, PMIX_BOOL);
    check("PMIx_server_init", PMIx_server_init(&none, &info, 1));
    if (PMIx_Register_event_handler(both, 2, NULL, 0, on_change, NULL, NULL) < 0)
        check("PMIx_Register_event_handler", PMIX_ERROR);
    PMIX_FABRIC_CONSTRUCT(&fabric);
    check("PMIx_Fabric_register", PMIx_Fabric_register(&fabric, NULL, 0));
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (atomic_exchange(&changed, 0))
            look_at_fabric();
        place(strtoul(line, NULL, 10));
    }
    check("PMIx_Fabric_deregister", PMIx_Fabric_deregister(&fabric));
    check("PMIx_server_finalize", PMIx_server_finalize());
    return 0;
}
