/*
 * question.h - what fabricd asks its checker, and what that answers: the bytes of both.
 *
 * A length of 4 bytes stands in front of each. The format is not kept across versions: both ends are the same
 * program.
 */
#ifndef FABRICD_CHECKER_QUESTION_H
#define FABRICD_CHECKER_QUESTION_H

#include <netinet/in.h>

#include "topo/base/error.h"

enum checker_kind {
    CHECKER_CREDENTIAL = 1, /* open this munge credential; the code is munge's */
    CHECKER_NAME,           /* this host's IPv4 addresses; the code is getaddrinfo's */
    CHECKER_ORIGIN,         /* the origin that this host's munged gives what it makes; the code is munge's */
    CHECKER_KINDS
};

#define CHECKER_HEAD 4
#define CHECKER_MAX  ((size_t)2 << 20) /* behind the head; munged takes a credential of 1 MiB at most */

struct checker_question {
    enum checker_kind kind;
    uint32_t number;
    const char *text; /* never NULL */
};

struct checker_answer {
    uint32_t number;
    int code;
    uid_t uid; /* who made the credential, ... */
    gid_t gid;
    struct in_addr origin; /* ... and where; INADDR_ANY: not known */
    const void *bytes;     /* what was in it; of a name, its addresses: struct in_addr each */
    size_t size;
};

#define CHECKER_AT_ONCE 4 /* questions that are with the child: each has a thread there */

/* With their heads; free(). NULL: no memory, or larger than CHECKER_MAX. */
uint8_t *checker_put_question(const struct checker_question *question, size_t *size);
uint8_t *checker_put_answer(const struct checker_answer *answer, size_t *size);

/* The length that a head announces: 0 where no message has it. */
size_t checker_length(const void *head);

/* From the bytes behind the head, in which the text and the bytes stand. PMIXFAB_ERR_CORRUPT. */
int checker_read_question(const void *bytes, size_t size, struct checker_question *out);
int checker_read_answer(const void *bytes, size_t size, struct checker_answer *out);

#endif
