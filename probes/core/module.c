/* module.c - load probes that are shared objects, when they are needed. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/core/probe.h"

/*
 * Find the module relative to the program as built or installed: PREFIX/{bin,sbin}/fabricd and
 * PREFIX/LIBDIR/fabricd.
 */
static bool module_path(const char *name, char *path, size_t size)
{
    char program[2048];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    for (int up = 0; n > 0 && up < 2; up++) { /* the program's name, and its folder */
        program[n] = '\0';
        char *slash = strrchr(program, '/');
        n = slash == NULL ? 0 : slash - program;
    }
    if (n <= 0)
        return false;
    program[n] = '\0';
    return (size_t)snprintf(path, size, "%s/" FABRICD_MODULE_DIR "/probe_%s.so", program, name) < size;
}

const struct probe *probe_load(const struct probe *probe, struct fab_err *err)
{
    char path[4096];
    if (!probe->module)
        return probe;
    if (!module_path(probe->name, path, sizeof(path))) {
        fab_fail(err, PMIXFAB_ERR_NOTFOUND, "probe %s: the location of this program is unknown", probe->name);
        return NULL;
    }
    if (access(path, F_OK) != 0) {
        fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "probe %s: not built in: there is no %s", probe->name, path);
        return NULL;
    }
    /* UCX reads this when it is loaded: otherwise it patches mmap() and similar functions in this process
     * to track registered memory. A scan registers none, and a sanitizer patches the same functions. */
    setenv("UCX_MEM_EVENTS", "n", 1);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "probe %s: %s", probe->name, dlerror());
        return NULL;
    }
    const struct probe *loaded = dlsym(module, "fabricd_probe");
    if (loaded == NULL || strcmp(loaded->name, probe->name) != 0) {
        fab_fail(err, PMIXFAB_ERR_FOREIGN, "probe %s: %s is not a probe of this name", probe->name, path);
        return NULL;
    }
    return loaded;
}
