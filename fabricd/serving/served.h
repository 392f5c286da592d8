/*
 * served.h - the served state: the newest published snapshot of each plane. The room serving/ holds it in
 * memory, and as files in the run directory (rundir.h).
 *
 * A set is immutable and counted. The main thread replaces the current set; any thread takes a reference to
 * it and reads it without a lock.
 */
#ifndef FABRICD_SERVING_SERVED_H
#define FABRICD_SERVING_SERVED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "topo/model/model.h"

/* SHA-256 of bytes, if it was computed. */
#define SERVED_DIGEST 32
struct served_digest {
    bool known;
    uint8_t bytes[SERVED_DIGEST];
};

/* One plane: the checked bytes of its snapshot and a handle for them. Counted, since sets share planes. */
struct served_plane {
    atomic_uint refs;
    void *bytes;
    size_t size;
    struct pmixfab *fab;
    struct pmixfab_plane info;
    char *path;                    /* its file in the run directory */
    ino_t file;                    /* of a mapped file, its inode; else 0 */
    void (*release)(void *cbdata); /* releases a plane that was lent; NULL: it owns bytes and fab */
    void *cbdata;
    struct served_digest digest; /* of the bytes; main thread only */
};

struct served_set {
    atomic_uint refs;
    uint64_t generation; /* the newest of all planes; 0: nothing was ever published */
    int64_t published;
    uint32_t n;
    struct served_plane *planes[]; /* by index */
};

/* Check the bytes (malloc'ed) and take their ownership, also on error. The file's path is for callers on this
 * host. */
int served_plane_new(void *bytes, size_t size, const char *rundir, struct served_plane **out,
                     struct fab_err *err);
/* The same for bytes that fab_snapshot_borrow() has opened; takes the ownership of `fab`, too. */
int served_plane_opened(void *bytes, size_t size, struct pmixfab *fab, const char *rundir,
                        struct served_plane **out, struct fab_err *err);
/* The same for a handle that its owner keeps until `release` is called, on any thread. path: the file. On
 * error `release` is not called. */
int served_plane_lent(struct pmixfab *fab, const char *path, void (*release)(void *cbdata), void *cbdata,
                      struct served_plane **out, struct fab_err *err);
struct served_plane *served_plane_ref(struct served_plane *plane);
void served_plane_put(struct served_plane *plane); /* NULL allowed */

/* Make a set of n planes, ordered by index; takes over their references. NULL: no memory. */
struct served_set *served_set_new(struct served_plane **planes, uint32_t n, uint64_t generation,
                                  int64_t published);
void served_set_put(struct served_set *set); /* NULL allowed */

/* The current set of one daemon. NULL: no memory. */
struct served;
struct served *served_new(void);
/* Free it when no thread uses it any more. Sets returned by served_get() stay valid. NULL allowed. */
void served_free(struct served *served);

/* Return the current set, referenced; NULL before the first served_swap(). Any thread. */
struct served_set *served_get(struct served *served);
/* Replace the current set; takes the reference over. */
void served_swap(struct served *served, struct served_set *set);

/* Set or return whether the last sweep failed. Set by the main thread, read by any. */
void served_set_stale(struct served *served, bool stale);
bool served_is_stale(const struct served *served);

const struct served_plane *served_find(const struct served_set *set, uint32_t index);

#endif
