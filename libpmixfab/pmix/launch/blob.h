/*
 * blob.h - the packet that the starter of a job sends to each of its nodes: excerpts of the planes,
 * environment variables, a security key. The reader checks it before it uses anything
 * (docs/design/launch.md).
 */
#ifndef FAB_PMIX_LAUNCH_BLOB_H
#define FAB_PMIX_LAUNCH_BLOB_H

#include <pmix_common.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo/base/bytes.h"
#include "topo/base/frame.h"

/* The key under which it is sent, a PMIX_BYTE_OBJECT. */
#define FAB_BLOB_KEY "fabricd.launch"

#define FAB_BLOB_MAX    (64u << 20)
#define FAB_BLOB_SECRET 32 /* bytes of a security key */

/* Any change of the content of a blob or an excerpt requires a new version. */
static const struct frame_kind blob_frame = {.magic = {'F', 'A', 'B', 'L', 'N', 'C', 'H', '\n'},
                                             .version = 2,
                                             .max = FAB_BLOB_MAX,
                                             .what = "the launch information"};

#define FAB_BLOB_ENDPOINTS 65536u /* of a process, or of a node, maximum */

/* Numbers of a plane that the job has on each of its nodes; `plane` is its name. */
struct fab_blob_endpoints {
    const char *plane;
    uint32_t first, last;
};

/* Hosts with the launcher's names. */
struct fab_blob_hosts {
    const char *const *names;
    uint32_t n;
};

struct fab_blob {
    const char *nspace;
    const char *id;    /* PMIX_ALLOC_NETWORK_ID: the name of the allocation; "": none */
    const char *plane; /* the plane of the allocation; "": the first one */
    const struct fab_blob_endpoints *endpoints;  /* by plane, within a plane in order */
    uint32_t n_endpoints, per_process, per_node; /* for each process and each node */
    const char *const *envs;                     /* "NAME=value" */
    uint32_t n_envs;
    const char *const *parents; /* namespaces whose hosts are also in the excerpts */
    uint32_t n_parents;
    const struct pmixfab *const *planes; /* the default one first */
    uint32_t n_planes;
    bool has_secret;
    uint8_t secret[FAB_BLOB_SECRET];
};

/* Return whether the library would keep no value under this name: it is one of its own, or too long. */
bool fab_blob_bad_id(const char *id);

/*
 * Write the excerpt of each plane for these hosts: the job's own and those of its parents. Planes without any
 * of them are left out. PMIXFAB_ERR_NOMEM, _RANGE (larger than FAB_BLOB_MAX). Free out->at with free() in any
 * case.
 */
int fab_blob_write(const struct fab_blob *blob, const struct fab_blob_hosts *hosts, uint32_t n_hosts,
                   struct fab_bytes *out);

/*
 * Read untrusted bytes. After all checks, *out holds the content for the job of this name.
 * PMIXFAB_ERR_TRUNCATED, _FOREIGN, _OLDER, _NEWER, _CORRUPT; _CONFLICT: for another job; _NOMEM. On error
 * there is nothing to free.
 */
int fab_blob_read(const void *bytes, size_t size, const char *nspace, struct fab_blob *out,
                  struct fab_err *err);
void fab_blob_free(struct fab_blob *blob); /* after fab_blob_read(); wipes the secret */

/*
 * Select the variables of the starter. Patterns are names, separated by ";" or ",": a "?" matches any
 * character, a "*" at the end any rest.
 */

/* The job gets its security key in this variable, as hexadecimal digits. */
#define FAB_FORWARD_SECRET "FABRICD_SECURITY_KEY"

/* Return whether a pattern matches this name of `length` characters. NULL matches none. */
bool fab_forward_fits(const char *patterns, const char *name, size_t length);

/* Return whether it is an invalid pattern: a '*' before its end, or a '='. */
bool fab_forward_wrong(const char *patterns);

/*
 * Return the entries of env ("NAME=value" up to NULL) that match one of the n lists of patterns and not
 * `except`. The result is an array of pointers into env, each once. Free the array with free(). NULL without
 * memory.
 */
const char **fab_forward_harvest(char *const *env, const char *const *patterns, size_t n, const char *except,
                                 uint32_t *found);

#endif
