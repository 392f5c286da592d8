/*
 * output.h - the room of what all exports share: what is being made, what is lost in it, and where it goes.
 */
#ifndef FABRICCTL_EXPORT_OUTPUT_H
#define FABRICCTL_EXPORT_OUTPUT_H

#include "fabricctl/core/source.h"

#include <stdio.h>

struct ctl_names;

/* An export in the making. */
struct ctl_export {
    const struct ctl *ctl;
    const struct ctl_view *view; /* the planes that it is of, by their index */
    FILE *out;                   /* in memory; who is done looks whether it failed */
    unsigned n_lost;
    struct ctl_names *names; /* fabricctl/export/export_names.h */
    const char *reserved;    /* as in struct ctl_export_format */
    const char **chosen;     /* hosts of which some devices are chosen (fabricctl/export/bases.h) */
    size_t n_chosen;
};

/* A format is an entry of the table in fabricctl/export/export.c, and a file beside it. */
struct ctl_export_format {
    const char *name;
    const char *summary;
    bool all_planes; /* of all planes, unless --plane says which; else of one: that of --plane, or the default
                      */
    /* Writes to x->out. Tells its failures. */
    enum ctl_exit (*write)(struct ctl_export *x);
    /*
     * For --if-changed: what a text of the format says, in a form in which equal meanings are equal texts
     * (meaning.h). Free with free(); NULL: without memory, or it is no such text. NULL here: only the same
     * text says the same.
     */
    char *(*meaning)(const char *text);
    bool hosts; /* it takes a list of hosts after its name */
    bool tree;  /* it has hosts at leaves, so --interface says at which */
    /* Names, in either case, that its readers take for something else than a host, with commas between them:
     * such hosts are left out, and told. NULL: there are none. */
    const char *reserved;
};

/* The format cannot say this of the fabric: told on standard error, and with --strict nothing is written. */
void ctl_export_lost(struct ctl_export *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
