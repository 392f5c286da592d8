#include "pmix/launch/map_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"

#define MAP_NAME 1024 /* bytes of a node's name */

struct map_list {
    char **texts;
    uint32_t n, room;
    bool failed;
};

static void map_text_append(struct map_list *list, const char *text, size_t length)
{
    char *copy = NULL;
    if (length > 0 && list->n < FAB_MAP_NODES &&
        FAB_ARRAY_ROOM(&list->texts, &list->room, (uint64_t)list->n + 2))
        copy = strndup(text, length);
    if (copy == NULL) {
        list->failed = true;
        return;
    }
    list->texts[list->n++] = copy;
    list->texts[list->n] = NULL;
}

void fab_map_free(char **list)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++)
        free(list[i]);
    free(list);
}

/* All of it, or nothing. */
static char **map_done(struct map_list *list)
{
    if (!list->failed && list->n > 0)
        return list->texts;
    fab_map_free(list->texts);
    return NULL;
}

/* What stands in "pmix[...]" or behind "raw:", or the whole of a bare list. */
static const char *map_inside(const char *text, size_t *length)
{
    text += strncmp(text, "raw:", 4) == 0 ? 4 : 0;
    *length = strlen(text);
    if (strncmp(text, "pmix[", 5) != 0)
        return text;
    if (text[*length - 1] != ']')
        return NULL;
    *length -= 6;
    return text + 5;
}

/* A number of at most nine digits; *at is behind it. False: none. */
static bool map_number(const char **at, const char *end, uint32_t *out)
{
    const char *first = *at;
    *out = 0;
    while (*at < end && **at >= '0' && **at <= '9' && *at - first < 9)
        *out = *out * 10 + (uint32_t)(*(*at)++ - '0');
    return *at > first;
}

/* "PREFIX[DIGITS:1-3,7]SUFFIX": a name for each number. */
static void map_numbered(struct map_list *list, const char *item, const char *open, const char *close,
                         const char *end)
{
    const char *at = open + 1;
    char name[MAP_NAME];
    uint32_t digits, first, last;
    if (!map_number(&at, close, &digits) || at == close || *at++ != ':' || digits > 9) {
        list->failed = true;
        return;
    }
    for (bool more = true; more && !list->failed;) {
        if (!map_number(&at, close, &first)) {
            list->failed = true;
            return;
        }
        last = first;
        list->failed |= at < close && *at == '-' && (at++, !map_number(&at, close, &last) || last < first);
        for (uint32_t k = first; !list->failed && k <= last; k++) {
            int n = snprintf(name, sizeof(name), "%.*s%0*u%.*s", (int)(open - item), item, (int)digits, k,
                             (int)(end - close - 1), close + 1);
            list->failed |= n >= MAP_NAME;
            map_text_append(list, name, (size_t)n);
        }
        more = at < close && *at == ',';
        at += more;
    }
    list->failed |= at != close;
}

char **fab_map_nodes(const char *text)
{
    struct map_list list = {.texts = NULL};
    size_t length;
    const char *at = map_inside(text, &length), *end = at == NULL ? NULL : at + length;
    for (bool more = at != NULL; more && !list.failed; at++) {
        const char *item = at, *open = NULL, *close = NULL;
        for (; at < end && (*at != ',' || (open != NULL && close == NULL)); at++) {
            list.failed |= (*at == '[' && open != NULL) || (*at == ']' && (open == NULL || close != NULL));
            open = *at == '[' ? at : open;
            close = *at == ']' ? at : close;
        }
        if (list.failed || (open != NULL && close == NULL))
            list.failed = true;
        else if (open != NULL)
            map_numbered(&list, item, open, close, at);
        else
            map_text_append(&list, item, (size_t)(at - item));
        more = at < end;
    }
    return map_done(&list);
}

char **fab_map_ranks(const char *text)
{
    struct map_list list = {.texts = NULL};
    size_t length;
    const char *at = map_inside(text, &length), *end = at == NULL ? NULL : at + length;
    for (bool more = at != NULL; more && !list.failed; at++) {
        const char *item = at;
        while (at < end && *at != ';')
            at++;
        map_text_append(&list, item, (size_t)(at - item));
        more = at < end;
    }
    return map_done(&list);
}
