/*
 * notify.h - messages to the service manager that started fabricd (sd_notify(3)). Nothing is sent where no
 * manager asked for them.
 *
 * Each message is one datagram to the socket that the environment names, so no library is needed.
 */
#ifndef FABRICD_BASE_NOTIFY_H
#define FABRICD_BASE_NOTIFY_H

#include <stdint.h>

/* Read the manager's variables and remove them from the environment, so that no probe and no hook can send
 * messages in the name of fabricd. Call it first, before there are threads or children. */
void notify_open(void);

/* Send assignments in the form of sd_notify(3), one per line: "READY=1". Any thread. */
void notify_send(const char *assignments);

/* Ask the manager to keep this descriptor under a name and to pass it to the next start
 * (FileDescriptorStoreMax=). */
void notify_keep(int fd, const char *name);

/* Set the one status line that `systemctl status` shows. */
void notify_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Extend the start timeout to two minutes from now. Can be called repeatedly. After a restore the start
 * happens within the service's life, where the watchdog has to be served instead. */
void notify_starting(void);

/*
 * Return the longest interval between two NOTIFY_ALIVE of the main loop, in microseconds; 0: there is no
 * watchdog.
 */
#define NOTIFY_ALIVE "WATCHDOG=1"
int64_t notify_watchdog(void);

#endif
