/* component.c - a component of the framework pmdl that writes to standard error when it is closed, and
 * unloaded. */
#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>
#include <src/mca/pmdl/pmdl.h>
#include <stdio.h>
#include <unistd.h>

#ifdef PMIX_MCA_BASE_VERSION /* from 7 on */
#define FRAMEWORK PMIX_MCA_BASE_VERSION(pmdl)
#else
#define FRAMEWORK PMIX_MCA_BASE_VERSION_1_0_0("pmdl", 1, 0, 0)
#endif

static void report(const char *line)
{
    fprintf(stderr, "component: %s\n", line);
}

static pmix_status_t component_init(void)
{
    report("opened");
    return PMIX_SUCCESS;
}

static pmix_pmdl_module_t own_module = {.name = "upstream", .init = component_init};

static int component_close(void)
{
    report("closed");
    return PMIX_SUCCESS;
}

static int component_query(pmix_mca_base_module_t **module, int *priority)
{
    *module = (pmix_mca_base_module_t *)&own_module;
    *priority = 50;
    return PMIX_SUCCESS;
}

__attribute__((destructor)) static void component_unloaded(void)
{
    report("unloaded");
}

extern pmix_mca_base_component_t pmix_mca_pmdl_upstream_component;
pmix_mca_base_component_t pmix_mca_pmdl_upstream_component = {
    FRAMEWORK, .pmix_mca_component_name = "upstream",
    PMIX_MCA_BASE_MAKE_VERSION(component, PMIX_MAJOR_VERSION, PMIX_MINOR_VERSION, PMIX_RELEASE_VERSION),
    .pmix_mca_query_component = component_query, .pmix_mca_close_component = component_close};
