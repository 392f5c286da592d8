/*
 * pattrs_order.c - preloaded into a stock pattrs, whose library prints each line of a description into a
 * buffer of 141 characters and dies of the longer ones. Prints the same columns without the description.
 */
#include <pmix.h>
#include <stdio.h>

void pmix_attributes_print_attrs(char ***lines, const char *function, const pmix_regattr_t *attributes,
                                 size_t n);

void pmix_attributes_print_attrs(char ***lines, const char *function, const pmix_regattr_t *attributes,
                                 size_t n)
{
    char line[256];
    pmix_status_t rc;
    snprintf(line, sizeof(line), "%.200s:", function);
    PMIX_ARGV_APPEND(rc, *lines, line);
    for (size_t i = 0; i < n; i++) {
        snprintf(line, sizeof(line), "%.60s %.60s %.60s", attributes[i].name, attributes[i].string,
                 PMIx_Data_type_string(attributes[i].type));
        PMIX_ARGV_APPEND(rc, *lines, line);
    }
    (void)rc;
}
