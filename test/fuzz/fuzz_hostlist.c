/* Any text as a list of hosts: refused, or read; and what was read comes back when it is folded. */
#include <stdlib.h>
#include <string.h>

#include "topo/base/hostlist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fab_hostlist list, again;
    struct fab_err err = {{0}};
    char *text = calloc(1, size + 1), *folded;

    must(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    if (fab_hostlist_parse(text, &list, &err) == 0) {
        folded = fab_hostlist_fold((const char *const *)list.names, list.n);
        must(folded != NULL && fab_hostlist_parse(folded, &again, &err) == 0 && again.n == list.n);
        for (uint32_t i = 0; i < list.n; i++)
            must(strcmp(list.names[i], again.names[i]) == 0);
        fab_hostlist_free(&again);
        free(folded);
    } else {
        must(err.text[0] != '\0' && list.names == NULL);
    }
    fab_hostlist_free(&list);
    free(text);
    return 0;
}
