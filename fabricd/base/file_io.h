/* file_io.h - small files, read and written as a whole. Errors are numbers of errno, 0: none. */
#ifndef FABRICD_BASE_FILE_IO_H
#define FABRICD_BASE_FILE_IO_H

#include <stdbool.h>
#include <stddef.h>

#include "topo/base/error.h"

/* A new file that all may read, whatever the umask is; on error it is removed. What had the name loses it,
 * and is not written to: it may be a link, or have other names. */
int file_write(const char *path, const void *bytes, size_t size);

/* The same, put in the place of what is there only when it is written: under the name `beside` until then. */
int file_replace(const char *path, const char *beside, const void *bytes, size_t size);

/* Is there room for some more files in the folder? True where that is not known. */
bool file_has_room(const char *folder);

/* Bring the names in the folder of this file to the disk. */
int file_sync_folder(const char *path);

/* From now on nobody but its owner and its group opens it: whoever may read a file may lock it, too. Of a
 * file that is not there, or somebody else's, nothing is done. */
void file_hide(const char *path);

/* free(*bytes). Of a longer file the first `limit` bytes. What is no ordinary file: EINVAL. */
int file_read(const char *path, size_t limit, void **bytes, size_t *size);

/* A text of up to 64 MiB, whatever kind of file it comes from, with an end: free(*text), also on error. */
int file_text(const char *path, char **text, size_t *len, struct fab_err *err);

#define BOOT_ID_MAX  40
#define BOOT_UNKNOWN "unknown"

/* Which boot of the host it is, as the kernel names it; always the same. BOOT_UNKNOWN: it does not. One
 * thread at a time. */
const char *boot_id(void);

#endif
