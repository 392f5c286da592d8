#include "guard/guard_enter.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guard/guard.h"

#ifdef GUARD_FROM_PROGRAM
#define LIBRARY "libpmix-guard.so"

/* The path of the library, from the folder of this program. */
static const char place[] = GUARD_FROM_PROGRAM "/" LIBRARY;

static bool enter_has_library(const char *program)
{
    char path[PATH_MAX + sizeof(place)];
    const char *folder_end = strrchr(program, '/');
    if (folder_end == NULL)
        return false;
    snprintf(path, sizeof(path), "%.*s/%s", (int)(folder_end - program), program, place);
    return access(path, R_OK) == 0;
}

/* Restore the list without the guard, which is its first entry. */
static void enter_clean_list(const char *list)
{
    const size_t first = strcspn(list, ": ");
    if (strstr(list, LIBRARY) == NULL || strstr(list, LIBRARY) > list + first)
        return;
    if (list[first] == '\0')
        unsetenv("LD_PRELOAD");
    else
        setenv("LD_PRELOAD", list + first + 1, 1);
}

#ifdef __SANITIZE_ADDRESS__
/* The sanitizer requires to be the first library; switch that check off. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "verify_asan_link_order=0";
}
#endif

void guard_enter(char **argv)
{
    char program[PATH_MAX], *list = NULL;
    const char *before = getenv("LD_PRELOAD");
    const ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    /* it is loaded, or the loader has reported why not */
    if (before != NULL && strstr(before, LIBRARY) != NULL) {
        char *copy = strdup(before);
        if (copy != NULL)
            enter_clean_list(copy);
        free(copy);
        return;
    }
    if (n <= 0)
        return;
    program[n] = '\0';
    if (!enter_has_library(program) ||
        asprintf(&list, "$ORIGIN/%s%s%s", place, before != NULL ? ":" : "", before != NULL ? before : "") < 0)
        return;
    setenv("LD_PRELOAD", list, 1); /* the loader splits the list at blanks; it inserts the folder later */
    free(list);
    execv(program, argv);
    if (before != NULL) /* continue without the guard */
        setenv("LD_PRELOAD", before, 1);
    else
        unsetenv("LD_PRELOAD");
}

#else

void guard_enter(char **argv)
{
    (void)argv; /* this build has no guard */
}

#endif
