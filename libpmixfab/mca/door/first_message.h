/*
 * first_message.h - what a new connection to a PMIx server says of itself, before the library reads it.
 */
#ifndef FAB_MCA_DOOR_FIRST_MESSAGE_H
#define FAB_MCA_DOOR_FIRST_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
 * lengths that are inside of the message? No client, unless this server is one user's own, who starts jobs:
 * then also the modules of before, and infos are not looked at. A singleton is a tool to the library up to
 * 4.2, and a client from 5.0 on. The security module is for the library to know.
 */
bool first_message_read(const void *bytes, size_t size, bool own, struct first_message *out);

/* The credential of the module native: the bytes of user and group, which are those that it claims to be. */
bool first_message_is_native(const struct first_message *first);

#endif
