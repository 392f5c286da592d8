/* file_io.h - read and write small files as a whole. Errors are numbers of errno, 0: none. */
#ifndef FABRICD_BASE_FILE_IO_H
#define FABRICD_BASE_FILE_IO_H

#include <stdbool.h>
#include <stddef.h>

#include "topo/base/error.h"

/* Write a new file that all may read, whatever the umask is; remove it on error. An existing file of this
 * name is unlinked, not overwritten: it may be a link, or have other names. */
int file_write(const char *path, const void *bytes, size_t size);

/* Write the file under the name `beside`, and rename it to `path` when it is complete. */
int file_replace(const char *path, const char *beside, const void *bytes, size_t size);

/* Return whether the folder has room for some more files. True where that cannot be determined. */
bool file_has_room(const char *folder);

/* Sync the folder of this file to the disk. */
int file_sync_folder(const char *path);

/* Remove all permissions of others: a user who can read a file can lock it, too. Does nothing to a file that
 * is absent or has another owner. */
void file_hide(const char *path);

/* Read up to `limit` bytes from the beginning of a file. free(*bytes). EINVAL: not a regular file. */
int file_read(const char *path, size_t limit, void **bytes, size_t *size);

/* Read a text of up to 64 MiB from any kind of file, and terminate it. free(*text), also on error. */
int file_text(const char *path, char **text, size_t *len, struct fab_err *err);

#define BOOT_ID_MAX  40
#define BOOT_UNKNOWN "unknown"

/* Return the kernel's id of this boot of the host; constant. BOOT_UNKNOWN: the kernel has none. One thread at
 * a time. */
const char *boot_id(void);

#endif
