/*
 * blob.h - what the starter of a job hands to each of its nodes: excerpts of the planes, variables of the
 * environment, a security key, as one packet that its reader checks before it believes anything of it
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

/* The key under which it travels, a PMIX_BYTE_OBJECT. */
#define FAB_BLOB_KEY "fabricd.launch"

#define FAB_BLOB_MAX    (64u << 20)
#define FAB_BLOB_SECRET 32 /* bytes of a security key */

/* Whoever changes what stands in a blob or in an excerpt raises the version. */
static const struct frame_kind blob_frame = {
    .magic = "FABLNCH\n", .version = 2, .max = FAB_BLOB_MAX, .what = "the launch information"};

#define FAB_BLOB_ENDPOINTS 65536u /* of a process, or of a node, at most */

/* Numbers of a plane, which the job has on each of its nodes; `plane` is its name. */
struct fab_blob_endpoints {
    const char *plane;
    uint32_t first, last;
};

/* Hosts by the launcher's names. */
struct fab_blob_hosts {
    const char *const *names;
    uint32_t n;
};

struct fab_blob {
    const char *nspace;
    const char *id;    /* PMIX_ALLOC_NETWORK_ID: what is allocated is told under this name; "": nothing is */
    const char *plane; /* and is of this plane; "": of the first one */
    const struct fab_blob_endpoints *endpoints;  /* plane by plane, and of each in their order */
    uint32_t n_endpoints, per_process, per_node; /* so many of them each process and each node has */
    const char *const *envs;                     /* "NAME=value" */
    uint32_t n_envs;
    const char *const *parents; /* the namespaces whose hosts are in the excerpts, too */
    uint32_t n_parents;
    const struct pmixfab *const *planes; /* the default one first */
    uint32_t n_planes;
    bool has_secret;
    uint8_t secret[FAB_BLOB_SECRET];
};

/* The library keeps no value under a name of its own, or under a longer one. */
bool fab_blob_bad_id(const char *id);

/*
 * Of each plane what is told of these hosts: the job's own and those of its parents. Planes without any of
 * them are left out. PMIXFAB_ERR_NOMEM, _RANGE (it would be larger than FAB_BLOB_MAX). free() out->at either
 * way.
 */
int fab_blob_write(const struct fab_blob *blob, const struct fab_blob_hosts *hosts, uint32_t n_hosts,
                   struct fab_bytes *out);

/*
 * The bytes are whoever's: all is checked, then *out holds what the job of this name is to get.
 * PMIXFAB_ERR_TRUNCATED, _FOREIGN, _OLDER, _NEWER, _CORRUPT; _CONFLICT: it is another job's; _NOMEM. On error
 * there is nothing to free.
 */
int fab_blob_read(const void *bytes, size_t size, const char *nspace, struct fab_blob *out,
                  struct fab_err *err);
void fab_blob_free(struct fab_blob *blob); /* of fab_blob_read(); the secret is wiped */

/* Which variables of the starter go into it. Patterns are names, divided by ";" or ",": a "?" stands for any
 * character, a "*" at the end for any rest. */

/* The job is told its security key in this variable, as hexadecimal digits. */
#define FAB_FORWARD_SECRET "FABRICD_SECURITY_KEY"

/* Does a pattern fit this name, which is `length` characters long? NULL fits none. */
bool fab_forward_fits(const char *patterns, const char *name, size_t length);

/* Not a pattern: a '*' before its end, or a '='. */
bool fab_forward_wrong(const char *patterns);

/*
 * Of env ("NAME=value" up to NULL) those that fit one of the n lists of patterns and not `except`, as
 * pointers into it, each once; free() the array. NULL: no memory.
 */
const char **fab_forward_harvest(char *const *env, const char *const *patterns, size_t n, const char *except,
                                 uint32_t *found);

#endif
