/*
 * target.h - where a file for other programs goes: it appears whole or not at all.
 */
#ifndef FABRICCTL_EXPORT_TARGET_H
#define FABRICCTL_EXPORT_TARGET_H

#include "fabricctl/core/ctl.h"

/* A regular file is written under another name in the same folder; a pipe, a device and standard output as
 * they are. */
struct ctl_target {
    const char *shown; /* as the operator named it */
    char *path;        /* what it will be called; NULL: written in place */
    char *temporary;   /* NULL: none (any more) */
    int fd;
    bool close;
};

/* All tell their failures. `path` "-" is standard output. Close it in any case. */
enum ctl_exit ctl_target_open(const char *path, struct ctl_target *t);
enum ctl_exit ctl_target_write(const struct ctl_target *t, const void *bytes, size_t size);

/* The whole of a file that is there, with a 0 behind it; free with free(). NULL: it cannot be read. */
char *ctl_target_read(const char *path, size_t *size);

/* errno in words: `what`, and where. CTL_FAILED. */
enum ctl_exit ctl_target_failed(const struct ctl_target *t, const char *what);

/*
 * With CTL_DONE the finished file takes the place of the one that was there, which with `keep` is called
 * PATH.old from then on. Otherwise what was written is gone, and what was there stays. Returns `status`, or
 * what went wrong at the end.
 */
enum ctl_exit ctl_target_close(struct ctl_target *t, bool keep, enum ctl_exit status);

#endif
