/* disk_files.c - contents and names, each as it is and as it was when it was synced last. */
#include "test/sim/disk_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A write, or (bytes is NULL) a new size. */
struct change {
    size_t offset, size;
    uint8_t *bytes;
};

struct bytes {
    uint8_t *at;
    size_t size, room;
};

struct disk_content {
    unsigned uses; /* by names and by open files */
    uint64_t id;   /* in the order in which contents came */
    dev_t device;
    ino_t inode;
    struct bytes synced;
    struct change *changes; /* since then, oldest first */
    size_t n, room;
};

struct name {
    struct name *next;
    struct disk_content *now, *synced; /* NULL: it is not there */
    char text[];
};

struct disk_files {
    char *folder;
    struct name *names;
    uint64_t contents;
};

/* No test goes on without memory. */
static void *room_for(void *old, size_t size)
{
    void *memory = realloc(old, size > 0 ? size : 1);
    if (memory == NULL)
        abort();
    return memory;
}

/* ---- contents --------------------------------------------------------------------------------------- */

static void bytes_resize(struct bytes *bytes, size_t size)
{
    if (size > bytes->room) {
        bytes->room = size > 2 * bytes->room ? size : 2 * bytes->room;
        bytes->at = room_for(bytes->at, bytes->room);
    }
    if (size > bytes->size)
        memset(bytes->at + bytes->size, 0, size - bytes->size);
    bytes->size = size;
}

static void bytes_write(struct bytes *bytes, size_t offset, const uint8_t *from, size_t size)
{
    if (offset + size > bytes->size)
        bytes_resize(bytes, offset + size);
    if (size > 0)
        memcpy(bytes->at + offset, from, size);
}

static void bytes_apply(struct bytes *bytes, const struct change *change)
{
    if (change->bytes != NULL)
        bytes_write(bytes, change->offset, change->bytes, change->size);
    else
        bytes_resize(bytes, change->size);
}

static struct disk_content *content_use(struct disk_content *content)
{
    if (content != NULL)
        content->uses++;
    return content;
}

static void forget_changes(struct disk_content *content)
{
    for (size_t i = 0; i < content->n; i++)
        free(content->changes[i].bytes);
    content->n = 0;
}

void disk_content_release(struct disk_content *content)
{
    if (content == NULL || --content->uses > 0)
        return;
    forget_changes(content);
    free(content->changes);
    free(content->synced.at);
    free(content);
}

static struct change *content_change(struct disk_content *content)
{
    if (content->n == content->room) {
        content->room = content->room > 0 ? 2 * content->room : 16;
        content->changes = room_for(content->changes, content->room * sizeof(*content->changes));
    }
    return &content->changes[content->n++];
}

void disk_content_write(struct disk_content *content, int64_t offset, const void *bytes, size_t size)
{
    struct change *change = content_change(content);
    *change = (struct change){.offset = (size_t)offset, .size = size, .bytes = room_for(NULL, size)};
    memcpy(change->bytes, bytes, size);
}

void disk_content_truncate(struct disk_content *content, int64_t size)
{
    *content_change(content) = (struct change){.size = (size_t)size};
}

void disk_content_sync(struct disk_content *content)
{
    for (size_t i = 0; i < content->n; i++)
        bytes_apply(&content->synced, &content->changes[i]);
    forget_changes(content);
}

/* ---- names ------------------------------------------------------------------------------------------ */

struct disk_files *disk_files_new(const char *folder)
{
    struct disk_files *files = room_for(NULL, sizeof(*files));
    *files = (struct disk_files){.folder = strdup(folder)};
    if (files->folder == NULL)
        abort();
    return files;
}

/* *which was content's: it is other's. */
static void name_set(struct disk_content **which, struct disk_content *other)
{
    content_use(other);
    disk_content_release(*which);
    *which = other;
}

/* Names that neither are nor were synced are no names. */
static void drop_names(struct disk_files *files)
{
    for (struct name **at = &files->names; *at != NULL;) {
        struct name *name = *at;
        if (name->now != NULL || name->synced != NULL) {
            at = &name->next;
            continue;
        }
        *at = name->next;
        free(name);
    }
}

void disk_files_free(struct disk_files *files)
{
    if (files == NULL)
        return;
    for (struct name *name = files->names; name != NULL; name = name->next) {
        name_set(&name->now, NULL);
        name_set(&name->synced, NULL);
    }
    drop_names(files);
    free(files->folder);
    free(files);
}

static struct name *name_of(const struct disk_files *files, const char *text)
{
    struct name *name = files->names;
    while (name != NULL && strcmp(name->text, text) != 0)
        name = name->next;
    return name;
}

static bool stat_in(const struct disk_files *files, const char *text, struct stat *st)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", files->folder, text);
    return lstat(path, st) == 0;
}

/* What was made, renamed or removed past SQLite under a name: the disk has nothing of that name any more. */
static void name_check(const struct disk_files *files, struct name *name)
{
    struct stat st;
    const bool there = stat_in(files, name->text, &st);
    if (name->now == NULL ? !there : there && st.st_ino == name->now->inode && st.st_dev == name->now->device)
        return;
    name_set(&name->now, NULL);
    name_set(&name->synced, NULL);
}

struct disk_content *disk_files_find(struct disk_files *files, const char *text)
{
    struct name *name = name_of(files, text);
    if (name == NULL)
        return NULL;
    name_check(files, name);
    return content_use(name->now);
}

struct disk_content *disk_files_add(struct disk_files *files, const char *text, const void *bytes,
                                    size_t size, bool durable)
{
    struct disk_content *content = room_for(NULL, sizeof(*content));
    struct name *name = name_of(files, text);
    struct stat st = {0};
    stat_in(files, text, &st);
    *content =
        (struct disk_content){.uses = 1, .id = files->contents++, .device = st.st_dev, .inode = st.st_ino};
    bytes_write(&content->synced, 0, bytes, size);
    if (name == NULL) {
        name = room_for(NULL, sizeof(*name) + strlen(text) + 1);
        *name = (struct name){.next = files->names};
        strcpy(name->text, text);
        files->names = name;
    }
    name_set(&name->now, content);
    if (durable)
        name_set(&name->synced, content);
    return content;
}

void disk_files_remove(struct disk_files *files, const char *text)
{
    struct name *name = name_of(files, text);
    if (name != NULL)
        name_set(&name->now, NULL);
}

void disk_files_sync(struct disk_files *files)
{
    for (struct name *name = files->names; name != NULL; name = name->next)
        name_set(&name->synced, name->now);
    drop_names(files);
}

/* ---- images ----------------------------------------------------------------------------------------- */

/* How many of a content's changes reached this sector (or, with which = UINT64_MAX, its size): none, all, or
 * any number. What is written to one sector arrives in the order of the writes. */
static size_t torn_count(const struct disk_content *content, uint64_t seed, uint64_t which)
{
    const uint64_t drawn = disk_mix(disk_mix(seed, content->id), which);
    switch (drawn % 3) {
    case 0:
        return 0;
    case 1:
        return content->n;
    default:
        return (size_t)((drawn >> 8) % (content->n + 1));
    }
}

static void torn_write(struct bytes *bytes, const struct disk_content *content, size_t i, uint64_t seed)
{
    const struct change *change = &content->changes[i];
    for (size_t done = 0, part; done < change->size; done += part) {
        const size_t at = change->offset + done;
        part = DISK_SECTOR - at % DISK_SECTOR;
        if (part > change->size - done)
            part = change->size - done;
        if (i < torn_count(content, seed, at / DISK_SECTOR))
            bytes_write(bytes, at, change->bytes + done, part);
    }
}

/* Sectors apart from sizes: a file may have got its size, and zeros where the writes did not arrive. */
static void torn_bytes(struct bytes *bytes, const struct disk_content *content, uint64_t seed)
{
    const size_t sizes = torn_count(content, seed, UINT64_MAX);
    for (size_t i = 0; i < content->n; i++) {
        const struct change *change = &content->changes[i];
        if (change->bytes != NULL)
            torn_write(bytes, content, i, seed);
        else if (i < sizes)
            bytes_resize(bytes, change->size);
        if (change->bytes != NULL && i < sizes && change->offset + change->size > bytes->size)
            bytes_resize(bytes, change->offset + change->size);
    }
}

static int write_all(const char *path, const uint8_t *bytes, size_t size, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    int rc = fd < 0 ? -errno : 0;
    for (size_t done = 0; rc == 0 && done < size;) {
        const ssize_t n = write(fd, bytes + done, size - done);
        if (n < 0)
            rc = -errno;
        else
            done += (size_t)n;
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

static int image_name(const struct name *name, enum disk_loss how, uint64_t seed, const char *to)
{
    const struct disk_content *content = how == DISK_KEEPS ? name->now : name->synced;
    char path[PATH_MAX];
    struct bytes bytes = {0};
    if (how == DISK_TORN && name->now != name->synced) {
        const struct disk_content *either = name->now != NULL ? name->now : name->synced;
        content = disk_mix(disk_mix(seed, either->id), UINT64_MAX - 1) % 2 == 0 ? name->now : name->synced;
    }
    if (content == NULL)
        return 0;
    bytes_write(&bytes, 0, content->synced.at, content->synced.size);
    if (how == DISK_TORN)
        torn_bytes(&bytes, content, seed);
    for (size_t i = 0; how == DISK_KEEPS && i < content->n; i++)
        bytes_apply(&bytes, &content->changes[i]);
    snprintf(path, sizeof(path), "%s/%s", to, name->text);
    const int rc = write_all(path, bytes.at, bytes.size, 0640);
    free(bytes.at);
    return rc;
}

static int copy_as_it_is(const char *from, const char *to, const struct stat *st)
{
    struct bytes bytes = {0};
    int fd = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int rc = fd < 0 ? -errno : 0;
    ssize_t n = 1;
    while (rc == 0 && n > 0) {
        const size_t had = bytes.size;
        bytes_resize(&bytes, had + 65536);
        n = read(fd, bytes.at + had, 65536);
        rc = n < 0 ? -errno : 0;
        bytes.size = had + (n > 0 ? (size_t)n : 0);
    }
    if (fd >= 0)
        close(fd);
    if (rc == 0)
        rc = write_all(to, bytes.at, bytes.size, st->st_mode & 0777);
    free(bytes.at);
    return rc;
}

/* files: of the disk's folder itself, whose names are written already; NULL: of one below it. */
static int copy_others(const struct disk_files *files, const char *from, const char *to)
{
    DIR *folder = opendir(from);
    int rc = folder == NULL ? -errno : 0;
    for (struct dirent *entry; rc == 0 && (entry = readdir(folder)) != NULL;) {
        char old[PATH_MAX], new[PATH_MAX];
        struct stat st;
        const struct name *name = files != NULL ? name_of(files, entry->d_name) : NULL;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            (name != NULL && name->now != NULL))
            continue;
        if (snprintf(old, sizeof(old), "%s/%s", from, entry->d_name) >= (int)sizeof(old) ||
            snprintf(new, sizeof(new), "%s/%s", to, entry->d_name) >= (int)sizeof(new))
            rc = -ENAMETOOLONG;
        else if (lstat(old, &st) != 0)
            rc = -errno;
        else if (S_ISREG(st.st_mode))
            rc = copy_as_it_is(old, new, &st);
        else if (S_ISDIR(st.st_mode))
            rc = mkdir(new, st.st_mode & 0777) != 0 ? -errno : copy_others(NULL, old, new);
    }
    if (folder != NULL)
        closedir(folder);
    return rc;
}

int disk_files_image(struct disk_files *files, enum disk_loss how, uint64_t seed, const char *to)
{
    int rc = 0;
    for (struct name *name = files->names; rc == 0 && name != NULL; name = name->next) {
        name_check(files, name);
        rc = image_name(name, how, seed, to);
    }
    return rc == 0 ? copy_others(files, files->folder, to) : rc;
}
