/*
 * disk.h - a disk below SQLite: each call can fail, and a power cut can be played at each call.
 *
 * disk_new() registers a VFS as SQLite's default one. It is stacked over the default VFS of before, so files
 * are real. Of the files that SQLite opens in the disk's folder (not in folders below it), the disk keeps the
 * content as of the last sync and all writes since. disk_image() makes of these what a crash or a power cut
 * would leave.
 *
 * What is durable, and when:
 * - Content: with xSync of the file.
 * - A name that was made or removed: with a sync of the folder. SQLite syncs the folder after the first xSync
 * of a log or journal that it may have made, and after an xDelete with syncDir.
 * - A file that was there before SQLite opened it, and each change that is made past SQLite: at once. A file
 * that is empty when it is opened first counts as just made.
 *
 * A write that failed stays a write that was not synced; a later successful sync makes it durable. Linux may
 * drop such pages after a failed fsync() instead: that is not played.
 *
 * Nothing here reads a clock or a random number: time and seed come from the test, so the same calls write
 * the same bytes. One thread.
 */
#ifndef TEST_SIM_DISK_H
#define TEST_SIM_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct disk;

enum disk_op { DISK_OPEN, DISK_READ, DISK_WRITE, DISK_TRUNCATE, DISK_SYNC, DISK_DELETE };

/* A call point: a call of SQLite's that reads, changes or syncs a file of the disk. DISK_OPEN: makes a file.
 */
struct disk_call {
    uint64_t number; /* from 1 */
    enum disk_op op;
    const char *file; /* its base name */
    int64_t offset;   /* bytes; DISK_TRUNCATE: the size that the file gets; else 0 */
    int64_t size;     /* bytes that are read or written; else 0 */
    bool grows;       /* it takes room: makes a file, or writes behind its end */
};

/* Answer of a disk_fn: half of the bytes are written, then there is no room. Of a call that does not write:
 * no room. */
#define DISK_SHORT (-1)

/*
 * Called before each call point. Return 0 (go on), DISK_SHORT, or the code of SQLite's that the call fails
 * with (SQLITE_FULL, SQLITE_IOERR_FSYNC, ...); a call that fails changes nothing. May call disk_image(), and
 * SQLite for files outside the disk's folder.
 */
typedef int (*disk_fn)(void *arg, const struct disk_call *call);

/* A disk for this folder, which must be there. NULL: it is not. */
struct disk *disk_new(const char *folder);
/* Unregister it. All connections must be closed, and disks that were made later be freed. NULL allowed. */
void disk_free(struct disk *disk);

/* NULL: no call fails. */
void disk_on_call(struct disk *disk, disk_fn fn, void *arg);

/* Where SQLite's random numbers start from now on, of the whole process; 0 for a new disk. */
void disk_set_seed(struct disk *disk, uint64_t seed);

/* SQLite's time: microseconds since 1970. Without one it is always 1970. */
void disk_set_clock(struct disk *disk, int64_t (*now)(void *arg), void *arg);

/* Call points so far. */
uint64_t disk_calls(const struct disk *disk);

/* "write", ... */
const char *disk_op_name(enum disk_op op);

enum disk_loss {
    DISK_KEEPS, /* all that was written is there: the process was killed */
    DISK_LOSES, /* nothing is there that was not synced */
    DISK_TORN,  /* of what was not synced, some sectors, sizes and names are there: drawn from the seed */
};

#define DISK_SECTOR 512 /* bytes of one file that are written as a whole, or not at all */

/* Write into the empty folder `to` what a stop at this moment leaves of the disk's folder. All other files in
 * it, those in folders below it, too, are copied as they are; sockets and links are left out. Returns 0 or a
 * negative errno. */
int disk_image(struct disk *disk, enum disk_loss how, uint64_t seed, const char *to);

#endif
