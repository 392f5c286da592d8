#include "fabricd/config/mistakes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "topo/base/array.h"
#include "topo/base/error.h"

static bool stands_later(struct config_place a, struct config_place b)
{
    return a.line > b.line || (a.line == b.line && a.column > b.column);
}

void config_mistake_there(struct config_mistakes *mistakes, struct config_place at, const char *text)
{
    uint32_t to = mistakes->n;
    char *copy = NULL;
    if (to < CONFIG_MAX_MISTAKES && FAB_ARRAY_ROOM(&mistakes->items, &mistakes->room, to + 1))
        copy = strdup(text);
    if (copy == NULL) {
        mistakes->more++;
        return;
    }
    for (; to > 0 && stands_later(mistakes->items[to - 1].at, at); to--)
        mistakes->items[to] = mistakes->items[to - 1];
    mistakes->items[to] = (struct config_mistake){at, copy};
    mistakes->n++;
}

int config_mistake(struct config_mistakes *mistakes, int code, struct config_place at, const char *fmt, ...)
{
    struct fab_err reason, text;
    va_list args;
    va_start(args, fmt);
    fab_vfail(&reason, code, fmt, args);
    va_end(args);
    if (at.line > 0)
        fab_fail(&text, code, "%s:%d:%d: %s", mistakes->file, at.line, at.column, reason.text);
    config_mistake_there(mistakes, at, at.line > 0 ? text.text : reason.text);
    return code;
}

uint32_t config_mistakes_count(const struct config_mistakes *mistakes)
{
    return mistakes->n + mistakes->more;
}

void config_mistakes_tell(const struct config_mistakes *mistakes,
                          void (*tell)(const char *line, void *cbdata), void *cbdata)
{
    char more[80];
    for (uint32_t i = 0; i < mistakes->n; i++)
        tell(mistakes->items[i].text, cbdata);
    if (mistakes->more == 0)
        return;
    snprintf(more, sizeof(more), "and %u more mistakes", (unsigned)mistakes->more);
    tell(more, cbdata);
}

void config_mistakes_destroy(struct config_mistakes *mistakes)
{
    for (uint32_t i = 0; i < mistakes->n; i++)
        free(mistakes->items[i].text);
    free(mistakes->items);
    *mistakes = (struct config_mistakes){0};
}
