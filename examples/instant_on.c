/*
 * instant_on.c - a process that prints its fabric data at its start, before any message was sent: its
 * coordinates, its endpoints, the ranks below its switches, and the planes of its job. It needs the PMIx
 * library only.
 */
#include <pmix.h>
#include <stdio.h>

static pmix_proc_t self;

/* Return a value of this process's launch information; no request is sent. */
static pmix_value_t *known(pmix_rank_t rank, const char *key)
{
    pmix_value_t *value = NULL;
    pmix_info_t optional;
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, self.nspace, rank);
    PMIX_INFO_LOAD(&optional, PMIX_OPTIONAL, NULL, PMIX_BOOL);
    return PMIx_Get(&proc, key, &optional, 1, &value) == PMIX_SUCCESS ? value : NULL;
}

static void print_peers(const pmix_data_array_t *devices)
{
    for (size_t i = 0; i < devices->size; i++) {
        const pmix_info_t *device = ((pmix_info_t *)devices->array)[i].value.data.darray->array;
        printf(" %s below %s: ranks %s", device[0].value.data.string, device[1].value.data.string,
               device[2].value.data.string);
    }
}

int main(void)
{
    if (PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS)
        return 1;
    const pmix_value_t *coordinates = known(self.rank, PMIX_FABRIC_COORDINATES);
    const pmix_value_t *peers = known(self.rank, PMIX_SWITCH_PEERS);
    const pmix_value_t *planes = known(PMIX_RANK_WILDCARD, PMIX_FABRIC_PLANE);
    const pmix_value_t *endpoints = known(self.rank, PMIX_FABRIC_ENDPT);
    printf("rank %u:", self.rank);
    if (coordinates != NULL && coordinates->type == PMIX_COORD)
        for (size_t d = 0; d < coordinates->data.coord->dims; d++)
            printf(d == 0 ? " at %u" : ",%u", coordinates->data.coord->coord[d]);
    if (planes != NULL)
        printf(" in %s", ((char **)planes->data.darray->array)[0]);
    for (size_t i = 0; endpoints != NULL && i < endpoints->data.darray->size; i++)
        printf(" endpoint %s", ((pmix_endpoint_t *)endpoints->data.darray->array)[i].endpt.bytes);
    if (peers != NULL)
        print_peers(peers->data.darray);
    puts(planes == NULL ? " has no fabric information" : "");
    return PMIx_Finalize(NULL, 0) == PMIX_SUCCESS ? 0 : 1;
}
