/*
 * stock_distances.c - what the stock library calls the fabric devices of a machine.
 *
 * stock_distances FILE.xml: loads the machine (hwloc's XML), and prints the distances from its first
 * processor package to its network and RDMA devices, as JSON: [{"uuid", "osname", "type", "min", "max"},
 * ...].
 */
#include <pmix.h>
#include <pmix_tool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/integration/stock_status.h"

static int fail(const char *what, pmix_status_t rc)
{
    fprintf(stderr, "%s: %s (%d)\n", what, stock_status(rc), rc);
    return 1;
}

static const char *text_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static void print(const pmix_device_distance_t *distances, size_t n)
{
    printf("[");
    for (size_t i = 0; i < n; i++)
        printf("%s\n {\"uuid\": \"%s\", \"osname\": \"%s\", \"type\": %llu, \"min\": %u, \"max\": %u}",
               i > 0 ? "," : "", text_or_empty(distances[i].uuid), text_or_empty(distances[i].osname),
               (unsigned long long)distances[i].type, distances[i].mindist, distances[i].maxdist);
    printf("]\n");
}

static int measure(pmix_topology_t *machine)
{
    pmix_cpuset_t cpus = {0};
    pmix_info_t info[2];
    pmix_device_distance_t *distances = NULL;
    pmix_device_type_t fabric = PMIX_DEVTYPE_OPENFABRICS, network = PMIX_DEVTYPE_NETWORK;
    char first[] = "hwloc:0";
    size_t n = 0;
    pmix_status_t rc = PMIx_Parse_cpuset_string(first, &cpus);
    if (rc != PMIX_SUCCESS)
        return fail("PMIx_Parse_cpuset_string", rc);
    PMIX_INFO_LOAD(&info[0], PMIX_DEVICE_TYPE, &fabric, PMIX_DEVTYPE);
    PMIX_INFO_LOAD(&info[1], PMIX_DEVICE_TYPE, &network, PMIX_DEVTYPE);
    rc = PMIx_Compute_distances(machine, &cpus, info, 2, &distances, &n);
    if (rc != PMIX_SUCCESS)
        return fail("PMIx_Compute_distances", rc);
    print(distances, n);
    return 0;
}

int main(int argc, char **argv)
{
    pmix_topology_t machine = {0};
    pmix_proc_t self;
    pmix_info_t alone;
    if (argc != 2) {
        fprintf(stderr, "usage: stock_distances FILE.xml\n");
        return 2;
    }
    setenv("HWLOC_XMLFILE", argv[1], 1);
    setenv("HWLOC_THISSYSTEM", "0", 1);
    PMIX_INFO_LOAD(&alone, PMIX_TOOL_DO_NOT_CONNECT, NULL, PMIX_BOOL);
    pmix_status_t rc = PMIx_tool_init(&self, &alone, 1);
    if (rc != PMIX_SUCCESS)
        return fail("PMIx_tool_init", rc);
    char source[] = "hwloc";
    machine.source = source;
    rc = PMIx_Load_topology(&machine);
    int status = rc == PMIX_SUCCESS ? measure(&machine) : fail("PMIx_Load_topology", rc);
    fflush(stdout);
    PMIx_tool_finalize();
    return status;
}
