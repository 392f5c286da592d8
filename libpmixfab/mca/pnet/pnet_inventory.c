#include "mca/pnet/pnet_component.h"

#include <stdlib.h>
#include <string.h>

#include "topo/base/library_log.h"

#define MAX_SECONDS 600
#define MAX_DEPTH   4 /* of arrays of infos in each other */

struct pnet_inventory_params pnet_inventory_params;

/* ---- collect ------------------------------------------------------------------------------------ */

/* Why no key-value items, as the library's header says: docs/design/component.md. */
_Static_assert(sizeof(pmix_kval_t) < sizeof(pmix_infolist_t), "a key-value item holds no pmix_info_t");

static int inventory_seconds(const pmix_info_t directives[], size_t ndirs)
{
    int seconds = pnet_inventory_params.seconds;
    for (size_t i = 0; i < ndirs; i++)
        if (PMIX_CHECK_KEY(&directives[i], PMIX_TIMEOUT) && directives[i].value.type == PMIX_INT &&
            directives[i].value.data.integer > 0 && directives[i].value.data.integer < seconds)
            seconds = directives[i].value.data.integer;
    return seconds < 1 ? 1 : seconds > MAX_SECONDS ? MAX_SECONDS : seconds;
}

pmix_status_t pnet_inventory_collect(pmix_info_t directives[], size_t ndirs, pmix_list_t *inventory)
{
    struct fab_err err = {""};
    struct pnet_inventory_params wanted = pnet_inventory_params;
    wanted.host = pmix_globals.hostname;
    wanted.seconds = inventory_seconds(directives, ndirs);
    void *bytes;
    pmix_byte_object_t object;
    if (wanted.host == NULL || pnet_inspect(&wanted, &bytes, &object.size, &err) != PMIXFAB_OK) {
        fab_log(PMIXFAB_LOG_INFO, "%s", err.text[0] != '\0' ? err.text : "inventory: of a host without name");
        return PMIX_SUCCESS;
    }
    object.bytes = bytes;
    if (PMIx_Info_list_add(inventory, PMIXFAB_KEY_INVENTORY, &object, PMIX_BYTE_OBJECT) != PMIX_SUCCESS)
        fab_log(PMIXFAB_LOG_INFO, "inventory: out of memory");
    free(bytes);
    return PMIX_SUCCESS;
}

/* ---- deliver ------------------------------------------------------------------------------------ */

static struct pnet_sender sender = {.params = &pnet_inventory_params, .fd = -1};

static void inventory_hand_over(const void *bytes, size_t size)
{
    struct fab_err err = {""};
    if (pnet_send(&sender, bytes, size, &err) != PMIXFAB_OK)
        fab_log(PMIXFAB_LOG_WARNING, "inventory refused: %s", err.text);
}

static void take_inventory_value(const pmix_value_t *value)
{
    const pmix_data_array_t *array = value->type == PMIX_DATA_ARRAY ? value->data.darray : NULL;
    if (value->type == PMIX_BYTE_OBJECT && value->data.bo.bytes != NULL) {
        inventory_hand_over(value->data.bo.bytes, value->data.bo.size);
    } else if (array != NULL && array->type == PMIX_BYTE_OBJECT && array->array != NULL) {
        const pmix_byte_object_t *objects = array->array;
        for (size_t i = 0; i < array->size; i++)
            if (objects[i].bytes != NULL)
                inventory_hand_over(objects[i].bytes, objects[i].size);
    } else {
        fab_log(PMIXFAB_LOG_WARNING, "inventory refused: " PMIXFAB_KEY_INVENTORY " holds no bytes");
    }
}

/* A host that collects from many nodes puts what each of them said into an array, or an array of arrays. */
static void search_infos(const pmix_info_t *info, size_t n, unsigned depth)
{
    for (size_t i = 0; info != NULL && i < n; i++) {
        const pmix_value_t *value = &info[i].value;
        if (PMIX_CHECK_KEY(&info[i], PMIXFAB_KEY_INVENTORY))
            take_inventory_value(value);
        else if (value->type == PMIX_DATA_ARRAY && value->data.darray != NULL &&
                 value->data.darray->type == PMIX_INFO && depth < MAX_DEPTH)
            search_infos(value->data.darray->array, value->data.darray->size, depth + 1);
    }
}

pmix_status_t pnet_inventory_deliver(pmix_info_t info[], size_t ninfo, pmix_info_t directives[], size_t ndirs)
{
    (void)directives, (void)ndirs;
    search_infos(info, ninfo, 1);
    return PMIX_SUCCESS;
}

void pnet_inventory_stop(void)
{
    pnet_send_stop(&sender);
}
