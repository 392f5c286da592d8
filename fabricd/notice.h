/*
 * notice.h - between sweeps: a child that looks cheaply at the fabric, again and again, and says what
 * changed.
 *
 * It is one process that stays, because it knows the last inventory and the ways to its switches; it is begun
 * anew with each new inventory, and with growing pauses where it ends by itself.
 */
#ifndef FABRICD_NOTICE_H
#define FABRICD_NOTICE_H

#include <event2/event.h>

#include "fabricd/config.h"
#include "probes/probe.h"

struct notice;

struct notice_status {
    uint64_t looks;    /* since the start */
    uint64_t noticed;  /* how many of them found a change */
    uint64_t requests; /* of the last one */
    double look_ms;    /* how long the last one took */
    bool watching;     /* the child runs and has looked */
};

/* fn is called on the loop with what a look found; it must not call notice_watch() or notice_free(). */
int notice_new(struct event_base *base, const struct config *config,
               void (*fn)(const struct probe_noticed *noticed, void *cbdata), void *cbdata,
               struct notice **out);
void notice_free(struct notice *notice); /* NULL allowed; its child is gone, too */

/* The loop does not run any more: ask the child to end, for which notice_free() is going to wait, a second at
 * most. NULL allowed. */
void notice_leave(struct notice *notice);

/* Does the configuration ask for it, and is there a probe that can? */
bool notice_wanted(const struct config *config);

/* From now on against what this sweep saw (the bytes of struct sweep_result), which are taken over. The child
 * goes on where they are the same as before. */
void notice_watch(struct notice *notice, void *bytes, size_t size);

/* What it looks at, NULL before the first; valid until the next notice_watch(). */
const void *notice_inventory(const struct notice *notice, size_t *size);

void notice_status(const struct notice *notice, struct notice_status *out);

/* The child: what was swept on its standard input, lines on descriptor 3 (notice_child.c). */
int notice_child(int argc, char **argv);
#define NOTICE_CHILD_OPTION "--notice-child"

/* Nothing is noticed any more. */
void notice_forget(struct probe_noticed *noticed);

/* What the daemon reads of the child. */
struct notice_lines {
    struct probe_noticed noticed; /* by the look that is being told */
    struct notice_status status;
};
/* One line, without its end. True: a look is told entirely. Lines that are none are left out. */
bool notice_line(struct notice_lines *lines, const char *line);

#endif
