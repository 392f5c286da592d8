/*
 * connections.h - who is connected to the PMIx server, how often, and with how many bytes under way.
 *
 * An origin is a user of this host, as the kernel tells it, or another host's address. One origin has at most
 * an eighth of all places and 1,024, all of them together a half: the rest is for root, this process's own
 * user and the one named here. Any thread; a process that was forked off finds nothing.
 */
#ifndef FAB_MCA_DOOR_CONNECTIONS_H
#define FAB_MCA_DOOR_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "mca/door/origin.h"

/* Whose connections do not count among others'. */
void connections_prefer(uid_t uid);
bool connections_is_preferred(uid_t uid);

/* From now on only this process's own user is let in; its messages are not looked at. */
void connections_only_own(void);
bool connections_is_only_own(void);

/* For so many seconds none of its connections are admitted; not of a preferred one. The last of
 * CONNECTIONS_REFUSED count. */
#define CONNECTIONS_REFUSED 64
void connections_refuse(const struct origin *origin, unsigned seconds);

/* A new one. False: there is no place for one more of its origin, or that is refused. */
bool connections_admit(int fd);

/* That many bytes of it are on their way, or are no longer. False: too many of its origin are; nothing is
 * counted. */
bool connections_take(int fd, size_t bytes);
void connections_give(int fd, size_t bytes);

/* So many bytes of answers wait for its other side to read them; 0: it reads. False: with those of its
 * origin's other connections, or of all others, that is too many. What was said last of it counts. */
bool connections_unread(int fd, size_t bytes);

/* How many there are. */
unsigned connections_count(void);

/* Whose it is. False: it is not one of these. */
bool connections_origin(int fd, struct origin *out);

/* It registers for these events, a bit each, or deregisters them: those of them that it had not done yet. */
unsigned connections_set_events(int fd, unsigned events, bool on);

/* It is to be closed: not one of these, the first time, or once more before connections_forget(). */
enum connections_end { CONNECTIONS_OTHER, CONNECTIONS_FIRST, CONNECTIONS_AGAIN };
enum connections_end connections_close(int fd);

/* Its number is free for another one. */
void connections_forget(int fd);

#endif
