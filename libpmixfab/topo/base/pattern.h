/* pattern.h - a site's choice among names: "mlx5_0,mlx5_2:1,leaf-c*,!*-stor*". */
#ifndef FAB_TOPO_BASE_PATTERN_H
#define FAB_TOPO_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A list of shell patterns (fnmatch(3)), separated by commas or blanks. It has a thing that goes by several
 * names where one of its patterns matches one of them (where all patterns begin with "!": always), and no
 * pattern behind a "!" does. A name may be NULL.
 */
bool fab_pattern_has(const char *list, const char *const *names, size_t n);

/* Is there a pattern in it, and none that is empty behind its "!" or too long? */
bool fab_pattern_ok(const char *list);

#endif
