/* variables.h - the environment of a process that is about to start, as a list that ends with NULL. */
#ifndef FABRICD_HOST_JOB_VARIABLES_H
#define FABRICD_HOST_JOB_VARIABLES_H

#include <pmix_common.h>
#include <stdbool.h>
#include <stddef.h>

void variables_free(char **env);

/* "NAME=VALUE", in the place of what had this name. False: no memory. */
bool variables_put(char ***env, const char *variable);

/* What the directives PMIX_SET_ENVAR, _ADD_, _UNSET_, _PREPEND_ and _APPEND_ENVAR say, in their order; others
 * are passed over. False: no memory. */
bool variables_direct(char ***env, const pmix_info_t *info, size_t n);
bool variables_is_directive(const pmix_info_t *info);

#endif
