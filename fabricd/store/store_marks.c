/* store_marks.c - three lines in the lock's file: the pid of whoever has the store (0: nobody), and the
 * marks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/store/handle.h"

void store_marks_read(struct store *store)
{
    char text[1024] = "";
    struct store_marks *marks = &store->marks;
    *marks = (struct store_marks){0};
    if (pread(store->lock_fd, text, sizeof(text) - 1, 0) <= 0 ||
        sscanf(text, "%*d\nnewest %" SCNu64 "\nbackup %" SCNu64 " %511[^\n]", &marks->newest, &marks->backup,
               marks->file) < 1)
        *marks = (struct store_marks){0};
}

/* A help for people, and for the next start: a full disk must not keep the store from being served. In one
 * write, over what is there, which needs no room. */
void store_marks_write(struct store *store, long pid)
{
    char text[1024];
    const struct store_marks *marks = &store->marks;
    int n = snprintf(text, sizeof text, "%ld\nnewest %" PRIu64 "\nbackup %" PRIu64 " %s\n", pid,
                     marks->newest, marks->backup, marks->file);
    if (store->lock_fd >= 0 && pwrite(store->lock_fd, text, (size_t)n, 0) == n)
        (void)!ftruncate(store->lock_fd, n);
}

void store_marks(const struct store *store, struct store_marks *out)
{
    *out = store->marks;
}

void store_mark_newest(struct store *store, uint64_t generation)
{
    store->marks.newest = generation;
    store_marks_write(store, getpid());
}

void store_mark_backup(struct store *store, uint64_t generation, const char *file)
{
    store->marks.backup = generation;
    snprintf(store->marks.file, sizeof(store->marks.file), "%.*s", (int)strcspn(file, "\n"), file);
    store_marks_write(store, getpid());
}
