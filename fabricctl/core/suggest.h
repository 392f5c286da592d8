/* suggest.h - which name may be meant by one that nothing has. */
#ifndef FABRICCTL_CORE_SUGGEST_H
#define FABRICCTL_CORE_SUGGEST_H

#include "fabricctl/core/ctl.h"

/* Kinds of names, bits. */
enum ctl_names {
    CTL_HOSTS = 1,
    CTL_SWITCHES = 2,
    CTL_DEVICES = 4,
    CTL_GROUPS = 8,
    CTL_PLANES = 16,
    CTL_RAILS = 32
};

/* Call fn with each name of these kinds that is served; a name may come again. Nothing is told. */
void ctl_each_name(const struct ctl *ctl, unsigned kinds, void (*fn)(const char *name, void *cbdata),
                   void *cbdata);

/* "; did you mean leaf1?", of the served names of these kinds; "" where none is near, or one is the word. */
#define CTL_SUGGESTION 160
const char *ctl_suggest(const struct ctl *ctl, const char *word, unsigned kinds,
                        char text[static CTL_SUGGESTION]);

#endif
