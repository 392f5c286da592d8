/*
 * guard_priv.h - what the files of the guard have of each other.
 *
 * The library's private structures differ between versions. So what looks into one is compiled for the
 * versions that it was read and tried with, and done where the running library is the one that it was
 * compiled with.
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

/* From here on the library looks for a tool's name among those that it has, and says of a namespace that it
 * is on its list before it puts it there. */
#define PMIX_COUNTS_TOOLS (PMIX_NUMERIC_VERSION >= 0x00050009)

#define GUARD_KNOWS_LIBRARY (PMIX_IS_4_2_2 || PMIX_IS_5_0 || PMIX_IS_6_1)
#define GUARD_KNOWS_JOBS    PMIX_IS_4_2_2

/* ---- guard.c: what is done, and the functions behind the guard's -------------------------------------- */

bool guard_is_off(void);
bool guard_why_not_done(enum guard_part part, char why[GUARD_WHY]);
/* The part is done: for this kind of server, with this library. */
bool guard_does(enum guard_part part);
void guard_serve(enum guard_server server);
enum guard_server guard_server(void);
static inline bool guard_serves_user(void)
{
    return guard_server() == GUARD_SERVER_USER;
}
/* A warning. The line is a literal: its address is its name. Any thread. */
void guard_log(const char *line);
void guard_log_to(void (*fn)(const char *line));

/* The function of that name behind the guard's: the library's, munge's or libc's. The process ends where
 * there is none, as at any call of a missing function. */
void *guard_original(const char *name);
/* NULL: there is none. */
void *guard_find_original(const char *name);
/* Declares `original`, that function. */
#define GUARD_ORIGINAL(name)                                                                                 \
    __typeof__(&(name)) original;                                                                            \
    *(void **)&original = guard_original(#name)

/* ---- guard_origins.c: who is connected, how often, and with how many bytes under way --------------------
 */

/*
 * One origin has at most an eighth of all places and 1,024, all of them together a half: the rest is for
 * those who are preferred. Any thread; a process that was forked off finds nothing.
 */
void connections_prefer(uid_t uid);

/* A new one. False: it is not this process's own user's, where others are refused (own_only); or there is no
 * place for one more of its origin. */
bool connections_admit(int fd, bool own_only);

/* That many bytes of it are on their way, or are no longer. False: too many of its origin are; nothing is
 * counted. */
bool connections_take(int fd, size_t bytes);
void connections_give(int fd, size_t bytes);

/* So many bytes of answers wait for its other side to read them; 0: it reads. False: with those of its
 * origin's other connections, or of all others, that is too many. What was said last of it counts. */
bool connections_unread(int fd, size_t bytes);

unsigned connections_count(void);
unsigned connections_count_refused(void);

/* It registers for these events, a bit each, or deregisters them: those of them that it had not done yet. */
unsigned connections_set_events(int fd, unsigned events, bool on);

/* It is to be closed: not one of these, the first time, or once more before connections_forget(). */
enum connections_end { CONNECTIONS_OTHER, CONNECTIONS_FIRST, CONNECTIONS_AGAIN };
enum connections_end connections_close(int fd);

/* Its number is free for another one. */
void connections_forget(int fd);

/* Nothing that has arrived or arrives is read from it any more; who reads it next finds its end. */
void guard_end_connection(int sd);

/* The kernel is asked. What it does not tell is no user of this host; nor is it of who has closed his end. */
void origin_of(int fd, struct guard_origin *out);

/* ---- guard_packed.c: what a client's library has packed, looked through before this side unpacks it ------
 */

/*
 * The library believes each count and each length. Here they are compared with the bytes that are there,
 * strings end inside of them, and types are those that tools send. Nothing is copied. Format: that of the
 * modules v4 and v41.
 */
struct packed {
    const uint8_t *at;
    size_t left;
    bool described;   /* types stand before what was packed by one call */
    unsigned objects; /* infos, names and the like that the library would make room for */
};

/* n values of a type, packed by one call; exactly n. */
bool packed_skip(struct packed *in, pmix_data_type_t type, size_t n);

/* The same of n statuses, and what they are. */
bool packed_statuses(struct packed *in, size_t n, pmix_status_t *out);

/* The same of one value, and what it is. NULL: it is no string at all. */
bool packed_byte(struct packed *in, pmix_data_type_t type, uint8_t *out);
bool packed_count(struct packed *in, size_t *out); /* PMIX_SIZE */
bool packed_string(struct packed *in, const char **out);

/* A count and so many infos. With `check` each must please it. */
typedef bool (*packed_info_fn)(const char *key, pmix_data_type_t type, pmix_data_type_t of);
bool packed_infos(struct packed *in, packed_info_fn check);

/* ---- guard_messages.c: the first message of a connection, and requests, before the library reads them ---
 */

/* The strings are inside of the message. */
struct first_message {
    const char *psec;       /* the security module */
    const char *credential; /* of that; NULL: it is no text with an end */
    const void *credential_bytes;
    size_t credential_size;
    bool client;        /* of a job */
    uint32_t uid, gid;  /* whose it claims to be; a client does not say */
    const char *nspace; /* the name that it brings along; NULL: none */
    uint32_t rank;
    size_t kind_at; /* where in the message its kind stands, a byte */
    bool started; /* it says that a PMIx server has started it, under this name: one less is the kind without
                     that */
};

/*
 * Is it one of the kinds of tools that fabricd serves, with all of its fields, the modules of this time, and
 * lengths that are inside of the message? No client, unless this server is one user's, who starts jobs
 * (user): then also the modules of before, and infos are not looked at. A singleton is a tool to the library
 * up to 4.2, and a client from 5.0 on. The security module is for the library to know.
 */
bool first_message_read(const void *bytes, size_t size, bool user, struct first_message *out);

/* The credential of the module native: the bytes of user and group, which are those that it claims to be. */
bool first_message_is_native(const struct first_message *first);

/* The events that fabricd raises. */
enum { REQUEST_PENDING = 1, REQUEST_UPDATED = 2 };

struct request {
    uint8_t command;
    unsigned events; /* of those that fabricd raises, the ones that it registers for or deregisters */
};

/*
 * PMIX_SUCCESS: a command that fabricd answers, with all that belongs to it. PMIX_ERR_NOT_SUPPORTED: another
 * command. PMIX_ERR_NOT_FOUND: data of a job are asked for; there is none here. PMIX_ERR_BAD_PARAM: damaged.
 */
pmix_status_t request_check(const void *bytes, size_t size, bool described, struct request *out);

/* A fabric's key: "pmix.fab.NAME", "pmix.fabdev", "pmix.fabdev.NAME". */
#define FABRIC_KEYS "pmix.fab"

/* ---- guard_connect.c ------------------------------------------------------------------------------------
 */

bool guard_listen_on(int fd);

/* ---- guard_munge.c: munge credentials of new connections; on the library's thread ------------------------
 */

#define MAX_CREDENTIAL 4096 /* bytes; larger ones are refused */

/* The guard opens them, and not the library. */
bool credentials_are_opened(void);
/* done: it was opened, or good is false. False: it cannot be, and done is not called. */
typedef void (*credential_fn)(uint32_t number, bool good, uid_t uid, gid_t gid);
bool credential_open(uint32_t number, const char *text, credential_fn done);
/* Nobody waits for it any more. */
void credential_forget(uint32_t number);
/* None is opened any more. Any thread. */
void credentials_stop(void);

/* ---- guard_clients.c ------------------------------------------------------------------------------------
 */

void guard_on_left(void (*fn)(const pmix_proc_t *proc));
void guard_job_forgotten(const char *nspace);

/* The thread on which the library does everything: set where it comes by. */
extern _Thread_local bool guard_on_library_thread;

#endif
