/*
 * npy.h - a cost matrix as a file of NumPy's: format 1.0, '<u2', C order, N x N.
 */
#ifndef FABRICCTL_EXPORT_NPY_H
#define FABRICCTL_EXPORT_NPY_H

#include <stdio.h>

#include "fabricctl/core/ctl.h"

/* The header for an n x n matrix into buf; returns its length, a multiple of 64. */
#define CTL_NPY_HEADER_MAX 128
size_t ctl_npy_header(uint32_t n, unsigned char buf[static CTL_NPY_HEADER_MAX]);

/*
 * Write the plane's whole matrix to `path` ("-": standard output), some rows at a time. A regular file
 * appears whole or not at all: it is written under another name in the same folder and renamed at the end.
 * Tells its failures.
 */
enum ctl_exit ctl_npy_write(const struct pmixfab *fab, const char *path);

/* The same to a stream; the caller looks whether that failed. */
enum ctl_exit ctl_npy_print(const struct pmixfab *fab, FILE *out);

#endif
