/*
 * guard.h - the guard around the PMIx library of a server program: libpmix-guard.so, which is preloaded.
 *
 * It defines functions of the library, of munge and of libc by the same names, so that the library's calls
 * reach it first. There it works around faults of the library (docs/upstream.md), and limits untrusted
 * clients. A program finds it at run time by guard_find(); nothing is linked.
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

/* The origin of a connection: a user of this host, or another host. Compared bytewise. */
struct guard_origin {
    uint32_t local;          /* 1: a process of this user on this host */
    uint32_t uid;            /* 0 for another host */
    struct in6_addr address; /* of another host; an IPv4 address is mapped */
};

/* The parts of the guard. Each part is active as a whole, with the versions of the library that it was tested
 * with. */
enum guard_part {
    GUARD_FABRIC,      /* register and update of a fabric */
    GUARD_REQUESTS,    /* also get and query */
    GUARD_CONNECTIONS, /* connections: admission, messages, end; events; munge */
    GUARD_JOBS,        /* the same for processes of the server's own jobs */
};

/* The kind of server. */
enum guard_server {
    GUARD_SERVER_OTHER,  /* before serve(): any server; only GUARD_FABRIC is active */
    GUARD_SERVER_FABRIC, /* answers all callers about fabrics, and connects to none: requests, connections */
    GUARD_SERVER_USER,   /* of one user, with jobs: others are refused, and messages are not checked */
};

#define GUARD_WHY 512

/* From any thread, unless stated otherwise. */
struct pmix_guard {
    size_t size; /* of this table */

    /* ---- before the server starts ---- */

    /* Write why a part is not active with this library, as a text to follow "and", and return true. False: it
     * is active. */
    bool (*why_not)(enum guard_part part, char why[GUARD_WHY]);
    /* Return whether FABRICD_NO_REPAIR=1 switches all parts off. */
    bool (*is_off)(void);
    void (*serve)(enum guard_server server);
    /* Let the library use this listening TCP socket instead of binding its own, and keep it open for others
     * when it ends. Takes the descriptor over. False: not with this library. */
    bool (*listen_on)(int fd);
    /* Set the function for warnings, each at most once a minute. NULL: none. */
    void (*log_to)(void (*fn)(const char *line));
    /* Set the function to call when a tool, relay or client has disconnected and no connection of this name
     * is left. On the library's thread, also after the server has stopped. NULL: none. */
    void (*on_left)(void (*fn)(const pmix_proc_t *proc));

    /* ---- bounds ---- */

    /* Do not limit connections of this user, root, and this process's user. */
    void (*prefer)(uid_t uid);
    /* Admit connections of these users only. NULL: of all. Before the server starts; fn is called by any
     * thread. */
    void (*admit)(bool (*fn)(uid_t uid));
    unsigned (*connected)(void); /* number of connections */
    unsigned (*refused)(void);   /* refused connections since the start */

    /* ---- on the library's thread ---- */

    /* Release the library's data of ended processes of a job that the program has deregistered. */
    void (*job_forgotten)(const char *nspace);

    /* Call it before the server is stopped. */
    void (*stop)(void);
};

/* Return the guard. NULL: it was not preloaded, or is an older one. */
static inline const struct pmix_guard *guard_find(void)
{
    const struct pmix_guard *guard = (const struct pmix_guard *)dlsym(RTLD_DEFAULT, "pmix_guard");
    return guard != NULL && guard->size >= sizeof(*guard) ? guard : NULL;
}

/* Call the table's function, if there is a guard. */
static inline bool guard_why_not(enum guard_part part, char why[GUARD_WHY])
{
    const struct pmix_guard *guard = guard_find();
    if (guard != NULL)
        return guard->why_not(part, why);
    snprintf(why, GUARD_WHY, "libpmix-guard.so was not preloaded (check that it is installed)");
    return true;
}

#endif
