/*
 * guard.h - the guard around the PMIx library of a server program: libpmix-guard.so, which is preloaded.
 *
 * It has functions of the library, of munge and of libc by their names, so the library's calls reach it
 * first. There it works around the library's faults (docs/upstream.md), and bounds what untrusted clients may
 * do. A program finds it at run time: guard_find(). Nothing is linked.
 */
#ifndef GUARD_GUARD_H
#define GUARD_GUARD_H

#include <dlfcn.h>
#include <netinet/in.h>
#include <pmix_common.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Where a connection comes from: a user of this host, or another host. Compared as bytes. */
struct guard_origin {
    uint32_t local;          /* 1: a process of this host, with this user */
    uint32_t uid;            /* 0 with another host's */
    struct in6_addr address; /* another host's; an IPv4 one is mapped */
};

/* What the guard does. Each part is done as a whole, with the versions of the library that it was tried with.
 */
enum guard_part {
    GUARD_FABRIC,      /* a fabric's register and update */
    GUARD_REQUESTS,    /* these, get and query */
    GUARD_CONNECTIONS, /* who connects, what he sends, how it ends; events; munge */
    GUARD_JOBS,        /* all of this for the processes of one's own jobs */
};

/* Whose server it is. */
enum guard_server {
    GUARD_SERVER_OTHER,  /* before serve(): any server, for which only GUARD_FABRIC is done */
    GUARD_SERVER_FABRIC, /* it answers everybody about fabrics, and connects to nobody: requests, connections
                          */
    GUARD_SERVER_USER,   /* one user's, with jobs: others are refused, and messages are not looked at */
};

#define GUARD_WHY 512

/* From any thread, but where it says another one. */
struct pmix_guard {
    size_t size; /* of this table */

    /* ---- before the server starts ---- */

    /* Why a part is not done with this library, as a text behind "and": true. It is done: false. */
    bool (*why_not)(enum guard_part part, char why[GUARD_WHY]);
    /* FABRICD_NO_REPAIR=1: nothing is done. */
    bool (*is_off)(void);
    void (*serve)(enum guard_server server);
    /* The library takes this listening TCP socket in place of binding one of its own, and leaves it open for
     * others when it ends. The guard takes the descriptor over. False: not with this library. */
    bool (*listen_on)(int fd);
    /* Warnings, each at most once a minute. NULL: to nobody. */
    void (*log_to)(void (*fn)(const char *line));
    /* A tool, relay or client has gone, and nobody of this name is connected any more. On the library's
     * thread. NULL: nobody hears of it. Also after the server has stopped. */
    void (*on_left)(void (*fn)(const pmix_proc_t *proc));

    /* ---- bounds ---- */

    /* The connections of root, of this process's user and of this one are not bounded. */
    void (*prefer)(uid_t uid);
    unsigned (*connected)(void); /* how many are */
    unsigned (*refused)(void);   /* connections that were not admitted, since the start */

    /* ---- on the library's thread ---- */

    /* The program has deregistered this job: what the library keeps of its ended processes is released. */
    void (*job_forgotten)(const char *nspace);

    /* Before the server is stopped. */
    void (*stop)(void);
};

/* NULL: it was not preloaded, or is an older one. */
static inline const struct pmix_guard *guard_find(void)
{
    const struct pmix_guard *guard = (const struct pmix_guard *)dlsym(RTLD_DEFAULT, "pmix_guard");
    return guard != NULL && guard->size >= sizeof(*guard) ? guard : NULL;
}

/* As the table's, also where there is no guard. */
static inline bool guard_why_not(enum guard_part part, char why[GUARD_WHY])
{
    const struct pmix_guard *guard = guard_find();
    if (guard != NULL)
        return guard->why_not(part, why);
    snprintf(why, GUARD_WHY, "libpmix-guard.so was not preloaded (is it installed?)");
    return true;
}

#endif
