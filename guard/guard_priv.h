/*
 * guard_priv.h - declarations shared by the files of the guard.
 *
 * The library's private structures differ between versions. Code that accesses one is compiled for the tested
 * versions only, and is active if the running library is the one that it was compiled with.
 */
#ifndef GUARD_GUARD_PRIV_H
#define GUARD_GUARD_PRIV_H

#include <pmix_common.h>
#include <pmix_version.h>

#include "guard/guard.h"

/* ---- versions ------------------------------------------------------------------------------------- */

#define PMIX_IS_4_2_2 (PMIX_VERSION_MAJOR == 4 && PMIX_VERSION_MINOR == 2 && PMIX_VERSION_RELEASE == 2)
#define PMIX_IS_5_0   (PMIX_VERSION_MAJOR == 5 && PMIX_VERSION_MINOR == 0 && PMIX_VERSION_RELEASE >= 3)
#define PMIX_IS_6_1   (PMIX_VERSION_MAJOR == 6 && PMIX_VERSION_MINOR == 1)

/*
 * From this version on, the library searches a tool's name among the known names. It also marks a namespace
 * as being on its list before it puts the namespace there.
 */
#define PMIX_COUNTS_TOOLS (PMIX_NUMERIC_VERSION >= 0x00050009)

#define GUARD_KNOWS_LIBRARY (PMIX_IS_4_2_2 || PMIX_IS_5_0 || PMIX_IS_6_1)
#define GUARD_KNOWS_JOBS    PMIX_IS_4_2_2

/* ---- guard.c: the active parts, and the original functions -------------------------------------------- */

bool guard_is_off(void);
bool guard_why_not_done(enum guard_part part, char why[GUARD_WHY]);
/* Return whether the part is active: for this kind of server, with this library. */
bool guard_does(enum guard_part part);
void guard_serve(enum guard_server server);
enum guard_server guard_server(void);
static inline bool guard_serves_user(void)
{
    return guard_server() == GUARD_SERVER_USER;
}
/* Log a warning. The line is a literal: its address identifies it. Any thread. */
void guard_log(const char *line);
void guard_log_to(void (*fn)(const char *line));

/* Return the original function of that name: of the library, munge or libc. If there is none, the process
 * ends, as at any call of a missing function. */
void *guard_original(const char *name);
/* NULL: there is none. */
void *guard_find_original(const char *name);
/* Declare `original`, the original function. */
#define GUARD_ORIGINAL(name)                                                                                 \
    __typeof__(&(name)) original;                                                                            \
    *(void **)&original = guard_original(#name)

/* ---- guard_origins.c: connections by origin, and the bytes of their unfinished messages ---- */

/*
 * An origin may have at most an eighth of all places and 1,024, all origins together a half: the rest is for
 * preferred users. Any thread; a forked process sees no connections.
 */
void connections_prefer(uid_t uid);
void connections_admit_only(bool (*fn)(uid_t uid));
/* Return whether connections of this user are admitted. */
bool connections_admits(uid_t uid);

/*
 * Admit a new connection. False: the connection is of another user, and other users are rejected
 * (own_only), or its origin has no place left.
 */
bool connections_admit(int fd, bool own_only);

/* Count the bytes of a message that begins, or has ended. False: the origin has too many, and nothing is
 * counted. */
bool connections_take(int fd, size_t bytes);
void connections_give(int fd, size_t bytes);

/*
 * Set the number of bytes of answers that wait for the other side to read them; 0: the other side reads.
 * False: the total of its origin, or of all other origins, is too high. The last value counts.
 */
bool connections_unread(int fd, size_t bytes);

unsigned connections_count(void);
unsigned connections_count_refused(void);

/* Register or deregister these events, one bit each; returns those that have changed. */
unsigned connections_set_events(int fd, unsigned events, bool on);

/* The close of a descriptor: not of a connection, the first one, or a repeated one before
 * connections_forget(). */
enum connections_end { CONNECTIONS_OTHER, CONNECTIONS_FIRST, CONNECTIONS_AGAIN };
enum connections_end connections_close(int fd);

/* Release its number for reuse. */
void connections_forget(int fd);

/* Discard all input that has arrived or arrives; the next reader finds the end of the connection. */
void guard_end_connection(int sd);

/* Get the origin from the kernel. A socket without an answer, or closed at the other side, is of no user of
 * this host. */
void origin_of(int fd, struct guard_origin *out);

/* ---- guard_packed.c: check packed data of a client's library before this side unpacks them ---- */

/*
 * The library trusts each count and each length. Here they are compared with the available bytes, strings
 * must end within them, and only types that tools send are accepted. Nothing is copied. Format: that of the
 * modules v4 and v41.
 */
struct packed {
    const uint8_t *at;
    size_t left;
    bool described;   /* types precede the data of each call */
    unsigned objects; /* infos, names and similar that the library would allocate */
};

/* Skip exactly n values of a type, packed by one call. */
bool packed_skip(struct packed *in, pmix_data_type_t type, size_t n);

/* Skip n statuses, and return them. */
bool packed_statuses(struct packed *in, size_t n, pmix_status_t *out);

/* Skip one value, and return it. NULL: not a string. */
bool packed_byte(struct packed *in, pmix_data_type_t type, uint8_t *out);
bool packed_count(struct packed *in, size_t *out); /* PMIX_SIZE */
bool packed_string(struct packed *in, const char **out);

/* Skip a count and so many infos. With `check`, it must accept each. */
typedef bool (*packed_info_fn)(const char *key, pmix_data_type_t type, pmix_data_type_t of);
bool packed_infos(struct packed *in, packed_info_fn check);

/* ---- guard_messages.c: check the first message of a connection and requests before the library reads them
 * ---- */

/* The strings are part of the message. */
struct first_message {
    const char *psec;       /* the security module */
    const char *credential; /* of that module; NULL: not a terminated text */
    const void *credential_bytes;
    size_t credential_size;
    bool client;        /* of a job */
    uint32_t uid, gid;  /* as claimed; not sent by a client */
    const char *nspace; /* a name of its own; NULL: none */
    uint32_t rank;
    size_t kind_at; /* position of the byte with its kind in the message */
    /* it claims that a PMIx server has started it, under this name: its kind is one above that without this
     * claim */
    bool started;
};

/*
 * Check that it is one of the kinds of tools that fabricd serves, with all of its fields, current modules,
 * and lengths within the message. Clients are rejected, unless this server is one user's and starts jobs
 * (user): then older modules are accepted, too, and infos are not checked. A singleton is a tool for the
 * library up to 4.2, and a client from 5.0 on. The library checks the security module.
 */
bool first_message_read(const void *bytes, size_t size, bool user, struct first_message *out);

/* Return whether the credential of the module native has the bytes of the claimed user and group. */
bool first_message_is_native(const struct first_message *first);

/* The events that fabricd raises. */
enum { REQUEST_PENDING = 1, REQUEST_UPDATED = 2 };

struct request {
    uint8_t command;
    unsigned events; /* of the events that fabricd raises, those that it registers for or deregisters */
};

/*
 * Check a request. PMIX_SUCCESS: fabricd answers this command, and the request has all its data.
 * PMIX_ERR_NOT_SUPPORTED: it is another command. PMIX_ERR_NOT_FOUND: it requests data of a job, and there are
 * none here. PMIX_ERR_BAD_PARAM: it is damaged.
 */
pmix_status_t request_check(const void *bytes, size_t size, bool described, struct request *out);

/* The key of a fabric: "pmix.fab.NAME", "pmix.fabdev", "pmix.fabdev.NAME". */
#define FABRIC_KEYS "pmix.fab"

/* ---- guard_connect.c ------------------------------------------------------------------------------------
 */

bool guard_listen_on(int fd);

/* ---- guard_munge.c: munge credentials of new connections; on the library's thread ---- */

#define MAX_CREDENTIAL 4096 /* bytes; larger ones are refused */

/* Return whether the guard opens credentials instead of the library. */
bool credentials_are_opened(void);
/* Open a credential; done is called with the result, or with good false. False: not possible, and done is not
 * called. */
typedef void (*credential_fn)(uint32_t number, bool good, uid_t uid, gid_t gid);
bool credential_open(uint32_t number, const char *text, credential_fn done);
/* Cancel an open credential. */
void credential_forget(uint32_t number);
/* Stop opening credentials. Any thread. */
void credentials_stop(void);

/* ---- guard_clients.c ------------------------------------------------------------------------------------
 */

void guard_on_left(void (*fn)(const pmix_proc_t *proc));
void guard_job_forgotten(const char *nspace);

/* Set on the working thread of the library, when it calls the guard. */
extern _Thread_local bool guard_on_library_thread;

#endif
