/* front_state.h - what the files of this process's side share: front.c (life) and front_words.c (what is
 * said). */
#ifndef FABRICD_FRONT_FRONT_STATE_H
#define FABRICD_FRONT_FRONT_STATE_H

#include "fabricd/base/timer.h"
#include "fabricd/front/channel.h"
#include "fabricd/front/front.h"
#include "fabricd/front/refusals.h"
#include "fabricd/process/child.h"
#include "fabricd/process/supervisor.h"
#include "pmix/answers/plane_memory.h"

/* Which plane a caller was given; the next front must not give him another one's data. */
struct front_meant;

/* Set before the start, and not by it. */
struct front_fns {
    void (*check)(const char *credential, uint64_t number, void *cbdata);
    void *check_cbdata;
    void (*replaced)(void *cbdata);
    void *replaced_cbdata;
};

/* Where a front that the service manager starts connects (front_unit.c). */
struct front_unit {
    struct evconnlistener *listener;
    timer_fn came;
    char folder[4096];
    struct sockaddr_un address;
    int waiting; /* it has connected and is not answered yet; -1: none */
    pid_t pid;   /* and this is it */
};

struct front {
    struct front_fns fns;
    struct front_unit unit;
    struct refusals refusals;
    struct event_base *base;
    const struct config *config;
    struct served *served;
    char uri[512];
    gid_t gid;      /* of its user, where it has one */
    uid_t node_uid; /* of the nodes' user, where one is configured */
    unsigned port;  /* of the URI; 0: any */

    struct child *child; /* NULL: it is none of this process, or there is none */
    pid_t pid;
    long kb;                 /* of memory of its own, as it says; 0: not known */
    int note;                /* its page that is shared (note.h); 0 or less: none */
    struct channel *channel; /* NULL: it has none any more, or never had */
    bool ready;              /* it serves */
    bool wanted;             /* until the stop */
    uint32_t number;         /* of this front: what others were asked is nothing to it */
    const char *closed;      /* why its channel is at its end; NULL: it is not */
    struct fab_err failed;   /* why it could not start, in its own words */

    struct timer *again; /* the next start */
    struct supervisor life;
    struct timer *pulse; /* asks whether it lives */
    int64_t pulse_due;   /* milliseconds of the monotonic clock */
    uint64_t asked, lives;
    int64_t asked_since; /* when the oldest unanswered question was asked */

    uint64_t first_name; /* of a tool, for the next front */
    uint64_t named_from; /* and for this one */
    struct front_meant *meant;

    uint64_t announcement; /* number of the last one */
    struct timer *patience;
    void (*announced)(void *cbdata); /* NULL: nobody waits */
    void *announced_cbdata;
    struct event_plane *owed; /* planes whose UPDATED no front has confirmed */
    uint32_t n_owed;
    uint64_t owed_generation, owed_number;

    struct front_status status; /* but for what `life` has */
};

#define FRONT_USER "fabricd-front"

/* ---- front_child.c: one that is started here ---- */

/* Once, before the first: as whom it runs, and who the nodes' user is. */
int front_find_users(struct front *front, struct fab_err *err);
/* *channel: this end of its channel. */
int front_child_start(struct front *front, void (*done)(struct child_result *result, void *cbdata),
                      int *channel, struct fab_err *err);
void front_child_stop(struct front *front);

/* ---- front_unit.c: one that the service manager starts ---- */

/* Where it is not so yet: it can connect. came: on the loop, when one has. */
int front_unit_listen(struct front *front, timer_fn came, struct fab_err *err);
/* The connection of the one that waits to be answered, and its process; -1: none does. */
int front_unit_take(struct front *front, pid_t *pid);
void front_unit_stop(struct front *front);

/* ---- front_blame.c ---- */

/* The front is lost: whoever's message it was on ("": nobody's), by its note, is refused, and stands in
 * status.origin. That in words for the log, behind others. */
#define FRONT_BLAME_TEXT (ORIGIN_TEXT + 80)
void front_blame(struct front *front, char text[FRONT_BLAME_TEXT]);
void front_tell_refused(struct front *front); /* a new one */

/* ---- front_uri.c ---- */

/* Is it a PMIx server's, of the same name as the one before (""), at a numeric address, and on loopback
 * unless others may connect? */
bool front_uri_read(const char *uri, const char *before, bool remote, unsigned *port);

/* ---- front_words.c ---- */

/* Tell a new one all that there is. */
void front_tell_all(struct front *front);
/* Of what it says, all that is not about itself. False: it is not its to say. */
bool front_take_word(struct front *front, const struct front_message *message);
/* Whoever waits for an announcement goes on. */
void front_go_on(struct front *front);
int front_words_start(struct front *front);
void front_words_stop(struct front *front);

#endif
