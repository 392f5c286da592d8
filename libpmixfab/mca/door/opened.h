/*
 * opened.h - credentials of new connections, opened by somebody who may take his time, and not by the library
 * on its only thread.
 */
#ifndef FAB_MCA_DOOR_OPENED_H
#define FAB_MCA_DOOR_OPENED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DOOR_MAX_CREDENTIAL 4096 /* bytes; larger ones are refused */

/* Who opens them, on the library's thread, and answers with door_opened(); NULL: the library does. Before the
 * server starts. */
void door_on_credential(void (*fn)(uint32_t number, const char *credential));
bool door_has_opener(void);
void door_open(uint32_t number, const char *credential);

/* The answer, on the library's thread. */
struct door_opened {
    uint32_t number;
    bool good;
    uid_t uid;
    gid_t gid;
};
void door_opened(const struct door_opened *opened);
/* Who waits for it: the repairs. */
void door_on_opened(void (*fn)(const struct door_opened *opened));

#endif
