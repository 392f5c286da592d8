/*
 * stock_garbage.c - a scheduler that answers relayed requests with anything but what they ask for.
 *
 * Prints its URI, and ends with its standard input. Each lookup gets the next of the wrong answers below.
 */
#include <pmix.h>
#include <pmix_server.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/integration/stock_lines.h"

#define N_KINDS 8

static void load(pmix_pdata_t *data, const char *key, const void *value, pmix_data_type_t type)
{
    PMIX_PDATA_CONSTRUCT(data);
    PMIX_LOAD_PROCID(&data->proc, "garbage", 0);
    PMIX_LOAD_KEY(data->key, key);
    PMIX_VALUE_LOAD(&data->value, value, type);
}

static pmix_status_t lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t n,
                            pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    static unsigned turn;
    pmix_pdata_t data[8] = {0};
    size_t count = 0, number = 3;
    uint64_t big = UINT64_MAX;
    uint32_t small = 1;
    const unsigned kind = turn++ % N_KINDS;
    (void)proc, (void)keys, (void)info, (void)n;
    switch (kind) {
    case 0: /* success, and nothing */
        cbfunc(PMIX_SUCCESS, NULL, 0, cbdata);
        return PMIX_SUCCESS;
    case 1: /* a status that nobody knows */
        cbfunc(-31234, NULL, 0, cbdata);
        return PMIX_SUCCESS;
    case 2: /* much is missing */
        load(&data[count++], PMIX_FABRIC_VENDOR, "x", PMIX_STRING);
        break;
    case 3: /* wrong types */
        load(&data[count++], PMIX_FABRIC_VENDOR, &number, PMIX_SIZE);
        load(&data[count++], PMIX_FABRIC_IDENTIFIER, &number, PMIX_SIZE);
        load(&data[count++], PMIX_FABRIC_INDEX, "one", PMIX_STRING);
        load(&data[count++], PMIX_FABRIC_NUM_DEVICES, &small, PMIX_UINT32);
        load(&data[count++], "pmixfab.generation", "7", PMIX_STRING);
        load(&data[count++], "pmixfab.published", "7", PMIX_STRING);
        break;
    case 4: /* one of them twice */
        load(&data[count++], PMIX_FABRIC_VENDOR, "x", PMIX_STRING);
        load(&data[count++], PMIX_FABRIC_IDENTIFIER, "x", PMIX_STRING);
        load(&data[count++], PMIX_FABRIC_INDEX, &number, PMIX_SIZE);
        load(&data[count++], PMIX_FABRIC_INDEX, &number, PMIX_SIZE);
        load(&data[count++], PMIX_FABRIC_NUM_DEVICES, &number, PMIX_SIZE);
        load(&data[count++], "pmixfab.generation", &big, PMIX_UINT64);
        break;
    case 5: /* a key that is none */
        load(&data[count++], "", &big, PMIX_UINT64);
        break;
    case 6: /* an address of here */
        load(&data[count++], PMIX_FABRIC_COST_MATRIX, data, PMIX_POINTER);
        break;
    default: /* an error that the function itself returns */
        return PMIX_ERR_NOT_FOUND;
    }
    cbfunc(PMIX_SUCCESS, data, count, cbdata);
    for (size_t i = 0; i < count; i++)
        PMIX_PDATA_DESTRUCT(&data[i]);
    return PMIX_SUCCESS;
}

static void tool_connected(pmix_info_t *info, size_t n, pmix_tool_connection_cbfunc_t cbfunc, void *cbdata)
{
    pmix_proc_t tool;
    PMIX_LOAD_PROCID(&tool, "garbage.tool", 0);
    for (size_t i = 0; i < n; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_NSPACE))
            PMIX_LOAD_NSPACE(tool.nspace, info[i].value.data.string);
    cbfunc(PMIX_SUCCESS, &tool, cbdata);
}

int main(void)
{
    static pmix_server_module_t module = {.lookup = lookup, .tool_connected = tool_connected};
    char report[] = "/tmp/stock_garbage.XXXXXX", line[64];
    pmix_info_t info[3];
    bool yes = true;
    int fd = mkstemp(report);
    if (fd < 0)
        return 1;
    close(fd);
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TOOL_SUPPORT, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_SERVER_NSPACE, "garbage", PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_TCP_REPORT_URI, report, PMIX_STRING);
    if (PMIx_server_init(&module, info, 3) != PMIX_SUCCESS)
        return 1;
    print_own_uri(report);
    while (fgets(line, sizeof(line), stdin) != NULL)
        ;
    PMIx_server_finalize();
    return 0;
}
