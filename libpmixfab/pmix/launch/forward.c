#include "pmix/launch/forward.h"

#include <stdlib.h>
#include <string.h>

#define FORWARD_DIVIDERS ";,"

static bool forward_fits_one(const char *pattern, size_t n, const char *name, size_t length)
{
    for (size_t i = 0; i < n; i++) {
        if (pattern[i] == '*')
            return true;
        if (i == length || (pattern[i] != '?' && pattern[i] != name[i]))
            return false;
    }
    return n > 0 && n == length;
}

bool fab_forward_fits(const char *patterns, const char *name, size_t length)
{
    for (size_t n; patterns != NULL && *patterns != '\0'; patterns += n + (patterns[n] != '\0')) {
        n = strcspn(patterns, FORWARD_DIVIDERS);
        if (forward_fits_one(patterns, n, name, length))
            return true;
    }
    return false;
}

bool fab_forward_wrong(const char *patterns)
{
    for (size_t i = 0; patterns != NULL && patterns[i] != '\0'; i++)
        if (patterns[i] == '=' || (patterns[i] == '*' && patterns[i + 1] != '\0' &&
                                   strchr(FORWARD_DIVIDERS, patterns[i + 1]) == NULL))
            return true;
    return false;
}

bool fab_forward_reserved(const char *name, size_t length)
{
    static const char library[] = "PMIX_", settings[] = "PMIX_MCA_", secret[] = FAB_FORWARD_SECRET;
    const bool setting = strncmp(name, settings, sizeof(settings) - 1) == 0;
    return (strncmp(name, library, sizeof(library) - 1) == 0 && !setting) ||
           (length == sizeof(secret) - 1 && strncmp(name, secret, length) == 0);
}

const char **fab_forward_harvest(char *const *env, const char *const *patterns, size_t n, const char *except,
                                 uint32_t *found)
{
    size_t room = 0;
    *found = 0;
    while (env != NULL && env[room] != NULL)
        room++;
    const char **list = calloc(room + 1, sizeof(*list));
    for (size_t i = 0; list != NULL && i < room; i++) {
        const size_t length = strcspn(env[i], "=");
        bool fits = false;
        for (size_t k = 0; k < n; k++)
            fits |= fab_forward_fits(patterns[k], env[i], length);
        if (fits && env[i][length] == '=' && !fab_forward_fits(except, env[i], length) &&
            !fab_forward_reserved(env[i], length))
            list[(*found)++] = env[i];
    }
    return list;
}
