/* module.c - probes that are shared objects of their own, loaded when they are to scan. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/core/probe.h"

/* Beside the program as it was built or installed: PREFIX/{bin,sbin}/fabricd and PREFIX/LIBDIR/fabricd. */
static bool module_path(const char *name, char *path, size_t size)
{
    char program[2048];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    for (int up = 0; n > 0 && up < 2; up++) { /* the program's name, and the folder that it is in */
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
        fab_fail(err, PMIXFAB_ERR_NOTFOUND, "probe %s: where this program stands is not known", probe->name);
        return NULL;
    }
    if (access(path, F_OK) != 0) {
        fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "probe %s: not built in: there is no %s", probe->name, path);
        return NULL;
    }
    /* UCX reads this when it is loaded: else it writes over the beginnings of mmap() and the like in this
     * process, to hear of memory that it may have registered. A scan registers none, and a sanitizer has its
     * own there. */
    setenv("UCX_MEM_EVENTS", "n", 1);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "probe %s: %s", probe->name, dlerror());
        return NULL;
    }
    const struct probe *loaded = dlsym(module, "fabricd_probe");
    if (loaded == NULL || strcmp(loaded->name, probe->name) != 0) {
        fab_fail(err, PMIXFAB_ERR_FOREIGN, "probe %s: %s is no probe of this name", probe->name, path);
        return NULL;
    }
    return loaded;
}
