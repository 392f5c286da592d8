/* pattern.h - patterns that select names: "mlx5_0,mlx5_2:1,leaf-c*,!*-stor*". */
#ifndef FAB_TOPO_BASE_PATTERN_H
#define FAB_TOPO_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Return whether a list of shell patterns (fnmatch(3)), separated by commas or blanks, selects a thing with n
 * names. It does if a pattern matches one of the names (or all patterns begin with "!") and no pattern after
 * a "!" matches one. A name may be NULL.
 */
bool fab_pattern_has(const char *list, const char *const *names, size_t n);

/* Return whether the list has a pattern, and no pattern is too long or empty after its "!". */
bool fab_pattern_ok(const char *list);

#endif
