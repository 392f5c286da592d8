#include "fabricd/host/job/variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void variables_free(char **env)
{
    for (char **at = env; at != NULL && *at != NULL; at++)
        free(*at);
    free(env);
}

/* Where the variable is whose name has so many characters, or else the end. */
static size_t variables_find(char *const *env, const char *name, size_t length)
{
    size_t n = 0;
    while (env[n] != NULL && (strncmp(env[n], name, length) != 0 || env[n][length] != '='))
        n++;
    return n;
}

bool variables_put(char ***env, const char *variable)
{
    const size_t n = variables_find(*env, variable, strcspn(variable, "="));
    const bool is_new = (*env)[n] == NULL;
    char **larger = is_new ? reallocarray(*env, n + 2, sizeof(*larger)) : *env;
    char *copy = strdup(variable);
    if (larger != NULL)
        *env = larger;
    if (larger == NULL || copy == NULL) {
        free(copy);
        return false;
    }
    if (is_new)
        larger[n + 1] = NULL;
    else
        free(larger[n]);
    larger[n] = copy;
    return true;
}

static void variables_remove(char **env, const char *name)
{
    size_t n = variables_find(env, name, strlen(name));
    if (env[n] == NULL)
        return;
    free(env[n]);
    do
        env[n] = env[n + 1];
    while (env[n++] != NULL);
}

/* "NAME=FIRST", or with both parts "NAME=FIRST:SECOND". */
static bool variables_join(char ***env, const char *name, const char *first, char separator,
                           const char *second)
{
    char *text;
    const int length = second == NULL ? asprintf(&text, "%s=%s", name, first)
                                      : asprintf(&text, "%s=%s%c%s", name, first, separator, second);
    const bool good = length >= 0 && variables_put(env, text);
    if (length >= 0)
        free(text);
    return good;
}

/* ---- directives --------------------------------------------------------------------------------- */

static bool is_envar(const pmix_info_t *info, const char *key)
{
    return PMIX_CHECK_KEY(info, key) && info->value.type == PMIX_ENVAR &&
           info->value.data.envar.envar != NULL && info->value.data.envar.value != NULL;
}

static bool is_unset(const pmix_info_t *info)
{
    return PMIX_CHECK_KEY(info, PMIX_UNSET_ENVAR) && info->value.type == PMIX_STRING &&
           info->value.data.string != NULL;
}

bool variables_is_directive(const pmix_info_t *info)
{
    return is_unset(info) || is_envar(info, PMIX_SET_ENVAR) || is_envar(info, PMIX_ADD_ENVAR) ||
           is_envar(info, PMIX_PREPEND_ENVAR) || is_envar(info, PMIX_APPEND_ENVAR);
}

static bool variables_follow(char ***env, const pmix_info_t *info)
{
    if (is_unset(info)) {
        variables_remove(*env, info->value.data.string);
        return true;
    }
    const pmix_envar_t *to = &info->value.data.envar;
    const size_t length = strlen(to->envar);
    const char *old = (*env)[variables_find(*env, to->envar, length)];
    if (old != NULL)
        old += length + 1;
    if (old != NULL && PMIX_CHECK_KEY(info, PMIX_ADD_ENVAR))
        return true;
    if (old != NULL && PMIX_CHECK_KEY(info, PMIX_APPEND_ENVAR))
        return variables_join(env, to->envar, old, to->separator, to->value);
    return variables_join(env, to->envar, to->value, to->separator,
                          PMIX_CHECK_KEY(info, PMIX_PREPEND_ENVAR) ? old : NULL);
}

bool variables_direct(char ***env, const pmix_info_t *info, size_t n)
{
    bool good = true;
    for (size_t i = 0; good && i < n; i++)
        good = !variables_is_directive(&info[i]) || variables_follow(env, &info[i]);
    return good;
}
