/*
 * fuzz_guard.c - an untrusted client's bytes before the PMIx library. Input: a byte that says which, and the
 * message.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guard/guard_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct first_message first;
    struct request request;
    if (size == 0)
        return 0;
    if (data[0] % 3 != 0) {
        pmix_status_t rc = request_check(data + 1, size - 1, data[0] % 3 == 1, &request);
        if (rc == PMIX_SUCCESS && request.events > (REQUEST_PENDING | REQUEST_UPDATED))
            abort();
        return 0;
    }
    if (first_message_read(data + 1, size - 1, data[0] % 2 != 0, &first) &&
        (first.kind_at >= size - 1 || strlen(first.psec) >= size ||
         (first.nspace != NULL && first.nspace[0] == '\0')))
        abort();
    return 0;
}
