/*
 * scheduler.c - place jobs on nodes that are near to each other, also after changes of the fabric. It needs
 * the PMIx library only, whose components answer from the run directory of this host's fabricd.
 *
 *   scheduler NODE...
 *
 * Each number that it reads is a job, the number of nodes that it needs. The answer is a line with their
 * names.
 */
#include <pmix.h>
#include <pmix_server.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define NO_PATH UINT16_MAX /* value in the matrix */

static pmix_fabric_t fabric;
static atomic_int changed;

static void check(const char *what, pmix_status_t status)
{
    if (status >= 0 || status == PMIX_OPERATION_SUCCEEDED)
        return;
    fprintf(stderr, "scheduler: %s: %s (%d)\n", what, PMIx_Error_string(status), status);
    exit(1);
}

static const pmix_value_t *find(const pmix_info_t *info, size_t n, const char *key)
{
    for (; n > 0 && !PMIX_CHECK_KEY(info, key); n--)
        info++;
    check(key, n > 0 ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND);
    return &info->value;
}

static void on_update(size_t handler, pmix_status_t what, const pmix_proc_t *source, pmix_info_t info[],
                      size_t n, pmix_info_t results[], size_t n_results,
                      pmix_event_notification_cbfunc_fn_t done, void *with)
{
    (void)handler, (void)source, (void)info, (void)n, (void)results, (void)n_results;
    printf("%s (%d)\n", PMIx_Error_string(what), what);
    changed = 1;
    done(PMIX_SUCCESS, NULL, 0, NULL, NULL, with);
}

/* Return the row of the node's first device that is up; SIZE_MAX: there is none. */
static size_t row_of(char *node)
{
    char *keys[] = {PMIX_FABRIC_DEVICES, NULL};
    char *plane = find(fabric.info, fabric.ninfo, PMIX_FABRIC_PLANE)->data.string;
    pmix_info_t which[] = {{PMIX_QUERY_REFRESH_CACHE, 0, {PMIX_BOOL, {.flag = true}}},
                           {PMIX_HOSTNAME, 0, {PMIX_STRING, {.string = node}}},
                           {PMIX_FABRIC_PLANE, 0, {PMIX_STRING, {.string = plane}}}};
    pmix_query_t query = {keys, which, 3};
    pmix_info_t *told = NULL;
    size_t n = 0, row = SIZE_MAX;
    const pmix_status_t rc = PMIx_Query_info(&query, 1, &told, &n);
    const pmix_data_array_t *devices = rc == PMIX_SUCCESS ? find(told, n, keys[0])->data.darray : NULL;
    for (size_t i = 0; devices != NULL && i < devices->size && row == SIZE_MAX; i++) {
        const pmix_data_array_t *device = ((pmix_info_t *)devices->array)[i].value.data.darray;
        if (find(device->array, device->size, PMIX_FABRIC_DEVICE_STATE)->data.linkstate != PMIX_LINK_DOWN)
            row = find(device->array, device->size, PMIX_FABRIC_DEVICE_INDEX)->data.uint32;
    }
    PMIX_INFO_FREE(told, n);
    return row;
}

/*
 * Print the first `count` nodes around one of the nodes, within the lowest cost at which there are so many.
 */
static void place(char **nodes, size_t n_nodes, size_t count)
{
    const uint16_t *costs = find(fabric.info, fabric.ninfo, PMIX_FABRIC_COST_MATRIX)->data.ptr;
    const size_t size = find(fabric.info, fabric.ninfo, PMIX_FABRIC_NUM_DEVICES)->data.size;
    size_t *rows = calloc(2 * n_nodes, sizeof(*rows)), *near = rows + n_nodes, n = 0;
    for (size_t i = 0; i < n_nodes; i++)
        rows[i] = row_of(nodes[i]);
    for (unsigned most = 0, next; most < NO_PATH && n < count; most = next) {
        next = NO_PATH;
        for (size_t at = 0; at < n_nodes && n < count; at++) {
            n = 0;
            for (size_t i = 0; i < n_nodes && n < count; i++) {
                const int known = rows[at] < size && rows[i] < size; /* an answer may be newer */
                const unsigned cost = known ? costs[rows[at] * size + rows[i]] : NO_PATH;
                if (cost <= most)
                    near[n++] = i;
                else if (cost < next)
                    next = cost;
            }
        }
    }
    for (size_t i = 0; n == count && i < n; i++)
        printf("%s ", nodes[near[i]]);
    puts(n == count ? "" : "no place");
    free(rows);
}

int main(int argc, char **argv)
{
    static pmix_server_module_t module;
    pmix_status_t updated = PMIX_FABRIC_UPDATED;
    pmix_info_t info;
    size_t count;
    setvbuf(stdout, NULL, _IOLBF, 0);
    PMIX_INFO_LOAD(&info, PMIX_SERVER_SCHEDULER, NULL, PMIX_BOOL);
    check("PMIx_server_init", PMIx_server_init(&module, &info, 1));
    check("events", PMIx_Register_event_handler(&updated, 1, NULL, 0, on_update, NULL, NULL));
    PMIX_FABRIC_CONSTRUCT(&fabric);
    check("PMIx_Fabric_register", PMIx_Fabric_register(&fabric, NULL, 0));
    while (scanf("%zu", &count) == 1) {
        if (atomic_exchange(&changed, 0)) /* until here the matrix does not change */
            check("PMIx_Fabric_update", PMIx_Fabric_update(&fabric));
        place(argv + 1, (size_t)argc - 1, count);
    }
    check("PMIx_Fabric_deregister", PMIx_Fabric_deregister(&fabric));
    check("PMIx_server_finalize", PMIx_server_finalize());
    return 0;
}
