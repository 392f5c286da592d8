#include "topo/base/pattern.h"

#include <fnmatch.h>
#include <string.h>

#define BETWEEN      ", \t"
#define PATTERN_ROOM 256

/* Read the next pattern without its "!"; it is empty if it is too long. Return false at the end. */
static bool next_pattern(const char **list, char pattern[PATTERN_ROOM], bool *without)
{
    const char *from = *list + strspn(*list, BETWEEN);
    size_t len = strcspn(from, BETWEEN);

    if (len == 0)
        return false;
    *list = from + len;
    *without = *from == '!';
    from += *without;
    len -= *without;
    if (len >= PATTERN_ROOM)
        len = 0;
    memcpy(pattern, from, len);
    pattern[len] = '\0';
    return true;
}

bool fab_pattern_has(const char *list, const char *const *names, size_t n)
{
    char pattern[PATTERN_ROOM];
    bool without, has = false, any = false;

    while (next_pattern(&list, pattern, &without)) {
        bool matches = false;

        for (size_t i = 0; i < n && !matches; i++)
            matches = names[i] != NULL && fnmatch(pattern, names[i], 0) == 0;
        if (without && matches)
            return false;
        any |= !without;
        has |= !without && matches;
    }
    return has || !any;
}

bool fab_pattern_ok(const char *list)
{
    char pattern[PATTERN_ROOM];
    bool without, any = false;

    for (; next_pattern(&list, pattern, &without); any = true)
        if (pattern[0] == '\0')
            return false;
    return any;
}
