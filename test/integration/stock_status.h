/* stock_status.h - a status by one name, whichever version of the library says it. */
#ifndef TEST_STOCK_STATUS_H
#define TEST_STOCK_STATUS_H

#include <pmix.h>
#include <string.h>

/* As 4.2 names it ("NOT-FOUND"); from 5 on the library says the constant's name ("PMIX_ERR_NOT_FOUND"). The
 * text is good until the thread's next call. */
static inline const char *stock_status(pmix_status_t status)
{
    static _Thread_local char name[64];
    const char *said = PMIx_Error_string(status);
    switch (status) {
    case PMIX_ERR_UNREACH:
        return "UNREACHABLE";
    case PMIX_ERR_NOMEM:
        return "NO-MEM";
    case PMIX_ERR_LOST_CONNECTION:
        return "LOST_CONNECTION";
    case PMIX_ERR_NOT_AVAILABLE:
        return "NOT_AVAILABLE";
    case PMIX_ERR_PARTIAL_SUCCESS:
        return "PARTIAL SUCCESS";
    default:
        break;
    }
    if (strncmp(said, "PMIX_", 5) != 0)
        return said;
    said += strncmp(said, "PMIX_ERR_", 9) == 0 ? 9 : 5;
    size_t n = 0;
    for (; said[n] != '\0' && n < sizeof(name) - 1; n++)
        name[n] = said[n] == '_' ? '-' : said[n];
    name[n] = '\0';
    return name;
}

#endif
