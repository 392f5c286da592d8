/*
 * shapes.h - private parts of the library that differ between versions. They follow the headers that a
 * component is compiled with; mca_same_library() keeps it from running with another library.
 */
#ifndef FAB_MCA_LIBRARY_SHAPES_H
#define FAB_MCA_LIBRARY_SHAPES_H

#include <stdbool.h>

#include <pmix_version.h>
#include <src/include/pmix_globals.h>
#include <src/mca/base/pmix_mca_base_var.h>
#include <src/mca/gds/gds.h>
#include <src/util/pmix_output.h>

/* The version that a component was built for: "7.0.0rc1". A test builds one for a version that does not
 * exist. */
#ifndef MCA_BUILT_FOR
#define MCA_BUILT_FOR PMIX_VERSION
#endif

/* A library without such an object still loads the component, which then declines. */
#if PMIX_VERSION_MAJOR >= 5
#pragma weak pmix_output_info
#endif

/* Return whether the library is initialized and its finalize has not begun. Any thread; it takes no lock. */
static inline bool mca_library_is_up(void)
{
#if PMIX_VERSION_MAJOR < 6
    return pmix_globals.init_cntr > 0;
#else
    return pmix_globals.initialized;
#endif
}

/* Return this process's store of job information; NULL before it is chosen. */
static inline pmix_gds_base_module_t *mca_library_store(void)
{
    return pmix_globals.mypeer->nptr->compat.gds;
}

/* Append the store's values of a key to `found`. On the library's thread. */
static inline pmix_status_t mca_library_fetch(const pmix_proc_t *proc, const char *key, pmix_info_t *info,
                                              size_t n, pmix_list_t *found)
{
#if PMIX_NUMERIC_VERSION < 0x00050007
    return mca_library_store()->fetch(proc, PMIX_INTERNAL, true, key, info, n, found);
#elif PMIX_VERSION_MAJOR < 7
    return mca_library_store()->fetch(pmix_globals.mypeer, proc, PMIX_INTERNAL, true, key, info, n, found);
#else
    const pmix_realm_t realm = pmix_gds_base_request_realm(key, info, n);
    return mca_library_store()->fetch(pmix_globals.mypeer, proc, PMIX_INTERNAL, true, key, info, n, realm,
                                      found);
#endif
}

/* From 4.2.3 on the function has a public name. */
#if PMIX_NUMERIC_VERSION < 0x00040203
#define mca_setenv pmix_setenv
#else
#define mca_setenv PMIx_Setenv
#endif

/*
 * The library derives a component's name from its file, so components for several libraries need several
 * names to be installed side by side.
 */
#define MCA_JOINED_(framework, name) pmix_mca_##framework##_##name##_component
#define MCA_JOINED(framework, name)  MCA_JOINED_(framework, name)
#define MCA_TEXT_(name)              #name
#define MCA_TEXT(name)               MCA_TEXT_(name)

/* Parameters have one name, whatever the component's is: PMIX_MCA_FRAMEWORK_fabricd_NAME. */
static inline void mca_parameter(const char *framework, const char *name, const char *what,
                                 pmix_mca_base_var_type_t type, void *storage)
{
    (void)pmix_mca_base_var_register("pmix", framework, "fabricd", name, what, type, storage);
}

/*
 * The object with the name that the library looks up. In 4.2 its type has one more part, which is not read.
 */
#ifdef PMIX_MCA_BASE_VERSION /* from 7 on */
#define MCA_FRAMEWORK_VERSION(framework) PMIX_MCA_BASE_VERSION(framework)
#else
#define MCA_FRAMEWORK_VERSION(framework) PMIX_MCA_BASE_VERSION_1_0_0(#framework, 1, 0, 0)
#endif
/* The version of the framework, and a text in the component's file for fabricd/base/components.h. */
#ifdef PMIX_MCA_BASE_VERSION
#define MCA_FRAMEWORK_TEXT_(major, minor, release)  #major "." #minor "." #release
#define MCA_FRAMEWORK_NUMBER(major, minor, release) MCA_FRAMEWORK_TEXT_(major, minor, release)
#define MCA_FRAMEWORK_TEXT(framework)                                                                        \
    MCA_FRAMEWORK_NUMBER(PMIX_MCA_##framework##_MAJOR_VERSION, PMIX_MCA_##framework##_MINOR_VERSION,         \
                         PMIX_MCA_##framework##_RELEASE_VERSION)
#else
#define MCA_FRAMEWORK_TEXT(framework) "1.0.0"
#endif
#define MCA_COMPONENT(framework, query_fn, register_fn)                                                      \
    static const char mca_note[] __attribute__((used)) =                                                     \
        "FABRICD_BUILT_FOR=" MCA_BUILT_FOR " " #framework " " MCA_FRAMEWORK_TEXT(framework);                 \
    extern pmix_mca_base_component_t MCA_JOINED(framework, FABRICD_COMPONENT);                               \
    pmix_mca_base_component_t MCA_JOINED(framework, FABRICD_COMPONENT) = {                                   \
        MCA_FRAMEWORK_VERSION(framework), .pmix_mca_component_name = MCA_TEXT(FABRICD_COMPONENT),            \
        PMIX_MCA_BASE_MAKE_VERSION(component, PMIX_MAJOR_VERSION, PMIX_MINOR_VERSION, PMIX_RELEASE_VERSION), \
        .pmix_mca_query_component = (query_fn), .pmix_mca_register_component_params = (register_fn)}

#endif
