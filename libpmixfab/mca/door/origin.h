/*
 * origin.h - where a TCP connection comes from.
 */
#ifndef FAB_MCA_DOOR_ORIGIN_H
#define FAB_MCA_DOOR_ORIGIN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* Compared as bytes. */
struct origin {
    uint32_t local;          /* 1: a process of this host, with this user */
    uint32_t uid;            /* 0 with another host's */
    struct in6_addr address; /* another host's; an IPv4 one is mapped */
};

/* The kernel is asked. What it does not tell is no user of this host; nor is it of who has closed his end. */
void origin_of(int fd, struct origin *out);

/* "uid 1000", "192.0.2.7"; "" without any. */
#define ORIGIN_TEXT 64
void origin_text(const struct origin *origin, char text[ORIGIN_TEXT]);

#endif
