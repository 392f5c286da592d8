/*
 * sysfs.h - what the kernel says in files of one line.
 */
#ifndef FAB_PROBES_CORE_SYSFS_H
#define FAB_PROBES_CORE_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

/* False: there is no such file, it is empty, or it cannot be read now. */
bool sysfs_line(const char *folder, const char *name, char *text, size_t size);

/* The last part of what a link leads to; false: it is none, or that is longer than `size`. */
bool sysfs_link(const char *folder, const char *name, char *text, size_t size);

/* A number, decimal or 0x..; 0 for what is none, and for -1, which drivers say when they do not know. */
unsigned sysfs_number(const char *folder, const char *name);

#endif
