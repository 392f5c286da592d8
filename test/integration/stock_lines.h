/*
 * stock_lines.h - lines that several of the programs print which know only the stock library.
 */
#ifndef TEST_STOCK_LINES_H
#define TEST_STOCK_LINES_H

#include <pmix.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "PMIX_FABRIC_UPDATED index I generation G plane P", of an event of the fabric. */
static inline void print_fabric_event(pmix_status_t status, const pmix_info_t info[], size_t n)
{
    flockfile(stdout);
    printf("%s", status == PMIX_FABRIC_UPDATED ? "PMIX_FABRIC_UPDATED" : "PMIX_FABRIC_UPDATE_PENDING");
    for (size_t i = 0; i < n; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_FABRIC_INDEX))
            printf(" index %zu", info[i].value.data.size);
        else if (PMIX_CHECK_KEY(&info[i], "pmixfab.generation"))
            printf(" generation %lu", (unsigned long)info[i].value.data.uint64);
        else if (PMIX_CHECK_KEY(&info[i], PMIX_FABRIC_PLANE))
            printf(" plane %s", info[i].value.data.string);
    }
    printf("\n");
    fflush(stdout);
    funlockfile(stdout);
}

/* "uri URI" of the server of this process, from the file of its PMIX_TCP_REPORT_URI, which is removed. */
static inline void print_own_uri(const char *report)
{
    char uri[512] = "";
    FILE *file = fopen(report, "r");
    if (file != NULL && fgets(uri, sizeof(uri), file) != NULL)
        uri[strcspn(uri, "\n")] = '\0';
    if (file != NULL)
        fclose(file);
    unlink(report);
    printf("uri %s\n", uri);
    fflush(stdout);
}

#endif
