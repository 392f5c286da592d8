/* disk.c - the VFS: it counts calls, lets them fail, and writes down what they change. */
#include "test/sim/disk.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "test/sim/disk_files.h"

/* Over one VFS of SQLite's: the default one, and the one without locks, which is asked for by its name. */
struct layer {
    sqlite3_vfs vfs;
    sqlite3_vfs *below;
    struct disk *disk;
};

struct disk {
    struct layer plain, none;
    char *folder;
    size_t folder_length;
    struct disk_files *files;
    uint64_t calls, random;
    disk_fn fn;
    void *arg;
    int64_t (*now)(void *arg);
    void *now_arg;
};

struct handle {
    sqlite3_file base;
    struct disk *disk;
    struct disk_content *content; /* NULL: of a file that is elsewhere */
    char name[NAME_MAX + 1];
    bool sync_folder;     /* with the next sync */
    sqlite3_file below[]; /* really as large as the VFS says */
};

const char *disk_op_name(enum disk_op op)
{
    static const char *const names[] = {
        [DISK_OPEN] = "open",         [DISK_READ] = "read", [DISK_WRITE] = "write",
        [DISK_TRUNCATE] = "truncate", [DISK_SYNC] = "sync", [DISK_DELETE] = "delete",
    };
    return names[op];
}

/* 0: go on. */
static int call_point(struct disk *disk, struct disk_call call)
{
    call.number = ++disk->calls;
    return disk->fn != NULL ? disk->fn(disk->arg, &call) : 0;
}

static int failure(int answer)
{
    return answer == DISK_SHORT ? SQLITE_FULL : answer;
}

/* ---- files ------------------------------------------------------------------------------------------ */

static struct handle *handle_of(sqlite3_file *file)
{
    return (struct handle *)file;
}

static int handle_call(struct handle *handle, enum disk_op op, int64_t offset, int64_t size)
{
    sqlite3_int64 end = 0;
    struct disk_call call = {.op = op, .file = handle->name, .offset = offset, .size = size};
    if (op == DISK_WRITE) {
        const int rc = handle->below->pMethods->xFileSize(handle->below, &end);
        if (rc != SQLITE_OK)
            return rc;
        call.grows = offset + size > end;
    }
    return call_point(handle->disk, call);
}

static int file_close(sqlite3_file *file)
{
    struct handle *handle = handle_of(file);
    disk_content_release(handle->content);
    handle->content = NULL;
    return handle->below->pMethods->xClose(handle->below);
}

static int file_read(sqlite3_file *file, void *to, int size, sqlite3_int64 offset)
{
    struct handle *handle = handle_of(file);
    if (handle->content != NULL) {
        const int answer = handle_call(handle, DISK_READ, offset, size);
        if (answer != 0)
            return failure(answer);
    }
    return handle->below->pMethods->xRead(handle->below, to, size, offset);
}

static int file_write(sqlite3_file *file, const void *from, int size, sqlite3_int64 offset)
{
    struct handle *handle = handle_of(file);
    int answer = 0;
    if (handle->content != NULL) {
        answer = handle_call(handle, DISK_WRITE, offset, size);
        if (answer == DISK_SHORT)
            size /= 2;
        else if (answer != 0)
            return answer;
    }
    const int rc = handle->below->pMethods->xWrite(handle->below, from, size, offset);
    if (rc == SQLITE_OK && handle->content != NULL)
        disk_content_write(handle->content, offset, from, (size_t)size);
    return rc == SQLITE_OK ? failure(answer) : rc;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct handle *handle = handle_of(file);
    if (handle->content != NULL) {
        const int answer = handle_call(handle, DISK_TRUNCATE, size, 0);
        if (answer != 0)
            return failure(answer);
    }
    const int rc = handle->below->pMethods->xTruncate(handle->below, size);
    if (rc == SQLITE_OK && handle->content != NULL)
        disk_content_truncate(handle->content, size);
    return rc;
}

/* The file below needs no sync: what a power cut leaves is made of what the disk knows. */
static int file_sync(sqlite3_file *file, int flags)
{
    struct handle *handle = handle_of(file);
    if (handle->content == NULL)
        return handle->below->pMethods->xSync(handle->below, flags);
    const int answer = handle_call(handle, DISK_SYNC, 0, 0);
    if (answer != 0)
        return failure(answer);
    disk_content_sync(handle->content);
    if (handle->sync_folder)
        disk_files_sync(handle->disk->files);
    handle->sync_folder = false;
    return SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    struct handle *handle = handle_of(file);
    return handle->below->pMethods->xFileSize(handle->below, size);
}

static int file_lock(sqlite3_file *file, int lock)
{
    struct handle *handle = handle_of(file);
    return handle->below->pMethods->xLock(handle->below, lock);
}

static int file_unlock(sqlite3_file *file, int lock)
{
    struct handle *handle = handle_of(file);
    return handle->below->pMethods->xUnlock(handle->below, lock);
}

static int file_is_reserved(sqlite3_file *file, int *out)
{
    struct handle *handle = handle_of(file);
    return handle->below->pMethods->xCheckReservedLock(handle->below, out);
}

static int file_control(sqlite3_file *file, int op, void *arg)
{
    struct handle *handle = handle_of(file);
    return handle->below->pMethods->xFileControl(handle->below, op, arg);
}

static int file_sector_size(sqlite3_file *file)
{
    struct handle *handle = handle_of(file);
    return handle->below->pMethods->xSectorSize(handle->below);
}

static int file_characteristics(sqlite3_file *file)
{
    struct handle *handle = handle_of(file);
    return handle->below->pMethods->xDeviceCharacteristics(handle->below);
}

static int file_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **at)
{
    struct handle *handle = handle_of(file);
    return handle->below->pMethods->xShmMap(handle->below, page, size, extend, at);
}

static int file_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    struct handle *handle = handle_of(file);
    return handle->below->pMethods->xShmLock(handle->below, offset, n, flags);
}

static void file_shm_barrier(sqlite3_file *file)
{
    struct handle *handle = handle_of(file);
    handle->below->pMethods->xShmBarrier(handle->below);
}

static int file_shm_unmap(sqlite3_file *file, int remove)
{
    struct handle *handle = handle_of(file);
    return handle->below->pMethods->xShmUnmap(handle->below, remove);
}

#define FILE_METHODS(version)                                                                                \
    .iVersion = (version), .xClose = file_close, .xRead = file_read, .xWrite = file_write,                   \
    .xTruncate = file_truncate, .xSync = file_sync, .xFileSize = file_size, .xLock = file_lock,              \
    .xUnlock = file_unlock, .xCheckReservedLock = file_is_reserved, .xFileControl = file_control,            \
    .xSectorSize = file_sector_size, .xDeviceCharacteristics = file_characteristics

/* Version 3 would have xFetch: what is read through a mapping is seen by nobody. */
static const sqlite3_io_methods methods = {FILE_METHODS(2), .xShmMap = file_shm_map,
                                           .xShmLock = file_shm_lock, .xShmBarrier = file_shm_barrier,
                                           .xShmUnmap = file_shm_unmap};
static const sqlite3_io_methods methods_without_shm = {FILE_METHODS(1)};

/* ---- the file system -------------------------------------------------------------------------------- */

/* The name of a file that is directly in the disk's folder; else NULL. */
static const char *name_in(const struct disk *disk, const char *path)
{
    if (path == NULL || strncmp(path, disk->folder, disk->folder_length) != 0 ||
        path[disk->folder_length] != '/')
        return NULL;
    const char *name = path + disk->folder_length + 1;
    return strchr(name, '/') == NULL && strlen(name) <= NAME_MAX ? name : NULL;
}

/* Of a file that the disk does not have, all bytes. */
static int learn_content(struct handle *handle, bool made)
{
    sqlite3_int64 size = 0;
    int rc = handle->below->pMethods->xFileSize(handle->below, &size);
    void *bytes = rc == SQLITE_OK ? malloc((size_t)size + 1) : NULL;
    if (rc == SQLITE_OK && bytes == NULL)
        rc = SQLITE_NOMEM;
    if (rc == SQLITE_OK && size > 0)
        rc = handle->below->pMethods->xRead(handle->below, bytes, (int)size, 0);
    if (rc == SQLITE_OK)
        handle->content =
            disk_files_add(handle->disk->files, handle->name, bytes, (size_t)size, !made && size > 0);
    free(bytes);
    return rc;
}

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out)
{
    const int journals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL;
    struct layer *layer = (struct layer *)vfs;
    struct handle *handle = handle_of(file);
    const char *name = name_in(layer->disk, path);
    struct stat st;
    const bool made = name != NULL && (flags & SQLITE_OPEN_CREATE) != 0 && stat(path, &st) != 0;
    memset(handle, 0, (size_t)vfs->szOsFile);
    handle->disk = layer->disk;
    const int answer =
        made ? call_point(layer->disk, (struct disk_call){.op = DISK_OPEN, .file = name, .grows = true}) : 0;
    if (answer != 0)
        return failure(answer);
    int rc = layer->below->xOpen(layer->below, path, handle->below, flags, out);
    if (rc != SQLITE_OK)
        return rc;
    if (name != NULL && (flags & SQLITE_OPEN_DELETEONCLOSE) == 0) {
        strcpy(handle->name, name);
        handle->content = disk_files_find(layer->disk->files, name);
        if (handle->content == NULL)
            rc = learn_content(handle, made);
        handle->sync_folder = (flags & SQLITE_OPEN_CREATE) != 0 && (flags & journals) != 0;
    }
    if (rc != SQLITE_OK) {
        handle->below->pMethods->xClose(handle->below);
        return rc;
    }
    handle->base.pMethods = handle->below->pMethods->iVersion >= 2 && handle->below->pMethods->xShmMap != NULL
                                ? &methods
                                : &methods_without_shm;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    struct layer *layer = (struct layer *)vfs;
    const char *name = name_in(layer->disk, path);
    const int answer =
        name != NULL ? call_point(layer->disk, (struct disk_call){.op = DISK_DELETE, .file = name}) : 0;
    if (answer != 0)
        return failure(answer);
    const int rc = layer->below->xDelete(layer->below, path, name == NULL && sync);
    if (rc == SQLITE_OK && name != NULL) {
        disk_files_remove(layer->disk->files, name);
        if (sync)
            disk_files_sync(layer->disk->files);
    }
    return rc;
}

static int vfs_randomness(sqlite3_vfs *vfs, int size, char *to)
{
    struct disk *disk = ((struct layer *)vfs)->disk;
    for (int i = 0; i < size; i++)
        to[i] = (char)(disk_mix(disk->random, (uint64_t)i) >> 56);
    disk->random = disk_mix(disk->random, UINT64_MAX);
    return size;
}

/* Nobody else runs meanwhile, so nothing is waited for. */
static int vfs_sleep(sqlite3_vfs *vfs, int microseconds)
{
    (void)vfs;
    return microseconds;
}

/* Milliseconds of Julian days. */
static int vfs_time(sqlite3_vfs *vfs, sqlite3_int64 *out)
{
    const struct disk *disk = ((struct layer *)vfs)->disk;
    *out = 210866760000000 + (disk->now != NULL ? disk->now(disk->now_arg) / 1000 : 0);
    return SQLITE_OK;
}

static int vfs_days(sqlite3_vfs *vfs, double *out)
{
    sqlite3_int64 milliseconds;
    vfs_time(vfs, &milliseconds);
    *out = (double)milliseconds / 86400000.0;
    return SQLITE_OK;
}

/* ---- the disk --------------------------------------------------------------------------------------- */

/* What is not set here only looks at files, and does not need to know whose VFS it is. */
static void layer_set(struct layer *layer, struct disk *disk, sqlite3_vfs *below, const char *name)
{
    *layer = (struct layer){.vfs = *below, .below = below, .disk = disk};
    layer->vfs.iVersion = 2; /* 3: replaces system calls */
    layer->vfs.szOsFile = (int)sizeof(struct handle) + below->szOsFile;
    layer->vfs.pNext = NULL;
    layer->vfs.zName = name;
    layer->vfs.xOpen = vfs_open;
    layer->vfs.xDelete = vfs_delete;
    layer->vfs.xRandomness = vfs_randomness;
    layer->vfs.xSleep = vfs_sleep;
    layer->vfs.xCurrentTime = vfs_days;
    layer->vfs.xCurrentTimeInt64 = vfs_time;
}

struct disk *disk_new(const char *folder)
{
    sqlite3_vfs *plain = sqlite3_vfs_find(NULL), *none = sqlite3_vfs_find("unix-none");
    struct disk *disk = calloc(1, sizeof(*disk));
    if (disk == NULL || plain == NULL || none == NULL || (disk->folder = realpath(folder, NULL)) == NULL) {
        free(disk);
        return NULL;
    }
    disk->folder_length = strlen(disk->folder);
    disk->files = disk_files_new(disk->folder);
    layer_set(&disk->plain, disk, plain, "disk");
    layer_set(&disk->none, disk, none, "unix-none");
    sqlite3_vfs_register(&disk->none.vfs, 0);
    sqlite3_vfs_register(&disk->plain.vfs, 1);
    disk_set_seed(disk, 0);
    return disk;
}

void disk_free(struct disk *disk)
{
    if (disk == NULL)
        return;
    sqlite3_vfs_unregister(&disk->plain.vfs);
    sqlite3_vfs_unregister(&disk->none.vfs);
    sqlite3_vfs_register(disk->plain.below, 1);
    disk_files_free(disk->files);
    free(disk->folder);
    free(disk);
}

void disk_on_call(struct disk *disk, disk_fn fn, void *arg)
{
    disk->fn = fn;
    disk->arg = arg;
}

void disk_set_seed(struct disk *disk, uint64_t seed)
{
    disk->random = seed;
    sqlite3_randomness(0, NULL); /* SQLite's own generator asks anew */
}

void disk_set_clock(struct disk *disk, int64_t (*now)(void *arg), void *arg)
{
    disk->now = now;
    disk->now_arg = arg;
}

uint64_t disk_calls(const struct disk *disk)
{
    return disk->calls;
}

int disk_image(struct disk *disk, enum disk_loss how, uint64_t seed, const char *to)
{
    return disk_files_image(disk->files, how, seed, to);
}
