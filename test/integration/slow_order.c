/* slow_order.c - preloaded into fabricctl: `run` gets its answer later than it waits for it. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The child of `run` writes the answer with this call. */
FILE *fopen(const char *path, const char *mode)
{
    FILE *(*next)(const char *, const char *) =
        (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    if (strstr(path, "/fabricctl-run.") != NULL)
        sleep(60);
    return next(path, mode);
}
