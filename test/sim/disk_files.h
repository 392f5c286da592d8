/*
 * disk_files.h - what of a folder's files is durable, for disk.c: contents, names, and the images of a power
 * cut.
 */
#ifndef TEST_SIM_DISK_FILES_H
#define TEST_SIM_DISK_FILES_H

#include <stddef.h>

#include "test/sim/disk.h"

struct disk_files;
/* What an inode is: it outlives its name. */
struct disk_content;

struct disk_files *disk_files_new(const char *folder);
void disk_files_free(struct disk_files *files); /* NULL allowed; all contents must be released */

/* The content of a file in the folder, for whoever opens it: disk_content_release(). NULL: the file is not
 * there, or it is not the one that was added under this name. */
struct disk_content *disk_files_find(struct disk_files *files, const char *name);

/* The same of a file that is there and was not found. Its bytes are durable; its name only where that is
 * said. */
struct disk_content *disk_files_add(struct disk_files *files, const char *name, const void *bytes,
                                    size_t size, bool durable);
void disk_content_release(struct disk_content *content);

/* The name was removed. */
void disk_files_remove(struct disk_files *files, const char *name);
/* All names are durable as they are now. */
void disk_files_sync(struct disk_files *files);

void disk_content_write(struct disk_content *content, int64_t offset, const void *bytes, size_t size);
void disk_content_truncate(struct disk_content *content, int64_t size);
void disk_content_sync(struct disk_content *content);

int disk_files_image(struct disk_files *files, enum disk_loss how, uint64_t seed, const char *to);

/* Mix numbers into one that looks random (splitmix64). */
static inline uint64_t disk_mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#endif
