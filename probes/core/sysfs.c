/* sysfs.c - files of one line. */
#include "probes/core/sysfs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool sysfs_line(const char *folder, const char *name, char *text, size_t size)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
        return false;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    bool ok = fgets(text, (int)size, file) != NULL;
    fclose(file);
    if (ok)
        text[strcspn(text, "\n")] = '\0';
    return ok && text[0] != '\0';
}

bool sysfs_link(const char *folder, const char *name, char *text, size_t size)
{
    char path[PATH_MAX], target[PATH_MAX];
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
        return false;
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    if (n <= 0)
        return false;
    target[n] = '\0';
    const char *slash = strrchr(target, '/');
    const char *last = slash == NULL ? target : slash + 1;
    return last[0] != '\0' && (size_t)snprintf(text, size, "%s", last) < size;
}

unsigned sysfs_number(const char *folder, const char *name)
{
    char text[32], *end;
    if (!sysfs_line(folder, name, text, sizeof(text)))
        return 0;
    errno = 0;
    long value = strtol(text, &end, 0);
    return errno == 0 && *end == '\0' && value > 0 && value < INT_MAX ? (unsigned)value : 0;
}
