/*
 * export_names.h - FILE.names beside an exported FILE: what switches are called there, so that they stay
 * called so.
 */
#ifndef FABRICCTL_EXPORT_EXPORT_NAMES_H
#define FABRICCTL_EXPORT_EXPORT_NAMES_H

#include "fabricctl/core/ctl.h"

#include <jansson.h>

/* A format that names switches loads them, heeds what `was`, and adds to `is`. */
struct ctl_names {
    char *path;  /* NULL: what is written is no file, and has no names beside it */
    json_t *was; /* NULL: there is no such file yet */
    json_t *is;  /* NULL: not loaded */
};

/* Of what `output` names (NULL and "-": standard output). Once; tells its failures. */
enum ctl_exit ctl_names_load(struct ctl_names *names, const char *output);

/* Nothing is written where nothing was loaded, or where it says the same. Tells its failures. */
enum ctl_exit ctl_names_save(const struct ctl_names *names);

void ctl_names_free(struct ctl_names *names);

#endif
