#include "fabricd/base/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topo/base/array.h"

int file_write(const char *path, const void *bytes, size_t size)
{
    const char *at = bytes;
    int fd = unlink(path) == 0 || errno == ENOENT
                 ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644)
                 : -1;
    if (fd < 0)
        return errno;
    int failed = fchmod(fd, 0644) != 0 ? errno : 0;
    while (size > 0 && failed == 0) {
        ssize_t n = write(fd, at, size);
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            failed = n == 0 ? ENOSPC : errno;
        }
    }
    if (close(fd) != 0 && failed == 0)
        failed = errno;
    if (failed != 0)
        unlink(path);
    return failed;
}

int file_replace(const char *path, const char *beside, const void *bytes, size_t size)
{
    int failed = file_write(beside, bytes, size);
    if (failed == 0 && rename(beside, path) != 0) {
        failed = errno;
        unlink(beside);
    }
    return failed;
}

bool file_has_room(const char *folder)
{
    static const char some[16384];
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof(path), "%s/.room.new", folder);
    const int failed = n < 0 || (size_t)n >= sizeof(path) ? 0 : file_write(path, some, sizeof(some));
    if (failed == 0)
        unlink(path);
    return failed != ENOSPC && failed != EDQUOT;
}

int file_sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *end = strrchr(path, '/');
    const int len = end == NULL ? 0 : (int)(end - path);
    const int n = snprintf(folder, sizeof(folder), "%.*s%s", len, path,
                           end == NULL   ? "."
                           : end == path ? "/"
                                         : "");
    if (n < 0 || (size_t)n >= sizeof(folder))
        return ENAMETOOLONG;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return failed;
}

void file_hide(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0 && (st.st_mode & S_IRWXO) != 0)
        chmod(path, st.st_mode & 07770);
}

int file_read(const char *path, size_t limit, void **bytes, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), failed = 0;
    *bytes = NULL;
    *size = 0;
    if (fd < 0)
        return errno;
    if (fstat(fd, &st) != 0)
        failed = errno;
    else if (!S_ISREG(st.st_mode))
        failed = EINVAL;
    size_t room = failed == 0 && (size_t)st.st_size < limit ? (size_t)st.st_size : limit;
    if (failed == 0 && (*bytes = malloc(room + 1)) == NULL)
        failed = ENOMEM;
    for (ssize_t n = 1; failed == 0 && n != 0 && *size < room;) {
        n = read(fd, (char *)*bytes + *size, room - *size);
        if (n > 0)
            *size += (size_t)n;
        else if (n < 0 && errno != EINTR)
            failed = errno;
    }
    close(fd);
    if (failed != 0)
        free(*bytes);
    if (failed != 0)
        *bytes = NULL;
    return failed;
}

int file_text(const char *path, char **text, size_t *len, struct fab_err *err)
{
    enum { LIMIT = 64 << 20, STEP = 65536 };
    uint32_t room = 0;
    int rc = PMIXFAB_OK;
    *text = NULL;
    *len = 0;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    for (size_t got = 1; rc == PMIXFAB_OK && got > 0; *len += got) {
        if (*len >= LIMIT || !FAB_ARRAY_ROOM(text, &room, *len + STEP))
            rc = fab_fail(err, PMIXFAB_ERR_RANGE, "%s: larger than %d MiB", path, LIMIT >> 20);
        got = rc == PMIXFAB_OK ? fread(*text + *len, 1, room - *len - 1, f) : 0;
    }
    if (rc == PMIXFAB_OK && ferror(f))
        rc = fab_fail(err, PMIXFAB_ERR_IO, "%s: reading it failed", path);
    if (rc == PMIXFAB_OK)
        (*text)[*len] = '\0';
    fclose(f);
    return rc;
}

const char *boot_id(void)
{
    static char boot[BOOT_ID_MAX]; /* constant for the lifetime of the process */
    if (boot[0] == '\0') {
        FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
        if (f == NULL || fscanf(f, "%39s", boot) != 1)
            snprintf(boot, sizeof(boot), BOOT_UNKNOWN);
        if (f != NULL)
            fclose(f);
    }
    return boot;
}
