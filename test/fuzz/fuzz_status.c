/* Any bytes as the status line of a PMIx server: refused, or read; and what was read comes back from its
 * line. */
#include <stdlib.h>
#include <string.h>

#include "fabricd/pmix/pmix_link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pmix_state state, again;
    char line[PMIX_STATUS_MAX];
    if (size > PMIX_STATUS_MAX || !pmix_state_read((const char *)data, size, &state))
        return 0;
    must(state.pid > 0 && memchr(state.uri, '\0', sizeof(state.uri)) != NULL &&
         memchr(state.failed, '\0', sizeof(state.failed)) != NULL);
    pmix_state_write(&state, line);
    /* a line without room for all of it is none */
    if (!pmix_state_read(line, strlen(line), &again))
        return 0;
    must(again.pid == state.pid && again.generation == state.generation &&
         again.connected == state.connected && again.subscribers == state.subscribers &&
         strcmp(again.uri, state.uri) == 0 && strcmp(again.failed, state.failed) == 0);
    return 0;
}
