/*
 * notify.h - what fabricd tells the service manager that started it (sd_notify(3)); nothing where none asked
 * for it.
 *
 * One datagram a message, to the socket that the environment names: that is all, so no library is needed for
 * it.
 */
#ifndef FABRICD_BASE_NOTIFY_H
#define FABRICD_BASE_NOTIFY_H

#include <stdint.h>

/* First of all, before there is a thread or a child: what is meant for this process leaves the environment,
 * so that no probe and no hook can speak for it. */
void notify_open(void);

/* Assignments as sd_notify(3) has them, a line each: "READY=1". Any thread. */
void notify_send(const char *assignments);

/* Have the manager keep this descriptor by a name, and hand it over at the next start
 * (FileDescriptorStoreMax=). */
void notify_keep(int fd, const char *name);

/* What `systemctl status` shows of us: one line. */
void notify_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The start takes long and goes on: it gets two minutes from now. Can be called as often as one likes. After
 * a restore it is a start within the service's life, which the watchdog waits for. */
void notify_starting(void);

/* The main loop has to say NOTIFY_ALIVE in less than so many microseconds; 0: nobody waits for that. */
#define NOTIFY_ALIVE "WATCHDOG=1"
int64_t notify_watchdog(void);

#endif
