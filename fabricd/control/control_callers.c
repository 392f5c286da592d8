/* control_callers.c - find out which callers are root, administrators or deliverers. */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/work.h"
#include "fabricd/control/connection.h"

#define LEAVE_MS 100 /* how long the daemon's end waits for a name service */

/* A configured name, and its user. */
struct caller_name {
    char *name;
    uid_t uid;
    bool known;    /* the user exists */
    bool delivers; /* may only deliver */
};

/* All names, as looked up by a thread. */
struct caller_names {
    struct callers *callers;
    struct caller_name *list;
    unsigned n;
};

struct callers {
    struct control *control;
    struct caller_names *names; /* NULL: not looked up since the configuration was read */
    struct work *work;
    struct caller_names *looking; /* the names that the thread works on */
    int64_t looked;               /* time of the last look-up, CLOCK_MONOTONIC */
    bool again;                   /* the configuration was reloaded meanwhile */
};

static void names_free(void *arg)
{
    struct caller_names *names = arg;
    if (names == NULL)
        return;
    for (unsigned i = 0; i < names->n; i++)
        free(names->list[i].name);
    free(names->list);
    free(names);
}

static struct caller_names *names_new(struct callers *callers)
{
    const struct config *config = callers->control->config;
    struct caller_names *names = calloc(1, sizeof(*names));
    if (names == NULL || (names->list = calloc(config->admins.n + 1, sizeof(*names->list))) == NULL) {
        free(names);
        return NULL;
    }
    names->callers = callers;
    for (unsigned i = 0; i <= config->admins.n; i++) {
        const bool delivers = i == config->admins.n;
        const char *name = delivers ? config->node_user : config->admins.items[i];
        if (name == NULL)
            continue;
        names->list[names->n] = (struct caller_name){.name = strdup(name), .delivers = delivers};
        if (names->list[names->n++].name == NULL) {
            names_free(names);
            return NULL;
        }
    }
    return names;
}

/* Runs on a thread. */
static void names_look(void *arg)
{
    const struct caller_names *names = arg;
    for (unsigned i = 0; i < names->n; i++) {
        char buffer[16384];
        struct passwd entry, *user = NULL;
        if (getpwnam_r(names->list[i].name, &entry, buffer, sizeof(buffer), &user) != 0 || user == NULL)
            continue;
        names->list[i].uid = user->pw_uid;
        names->list[i].known = true;
    }
}

static void names_looked(void *arg)
{
    struct caller_names *names = arg;
    struct callers *callers = names->callers;
    callers->work = NULL;
    callers->looking = NULL;
    names_free(callers->names);
    callers->names = names;
    if (callers->again)
        callers_look(callers, true);
}

void callers_look(struct callers *callers, bool anew)
{
    const int64_t now = clock_now(CLOCK_MONOTONIC);
    if (anew) {
        names_free(callers->names);
        callers->names = NULL;
    }
    callers->again = callers->work != NULL && (callers->again || anew);
    if (callers->work != NULL || (!anew && now - callers->looked < CONTROL_NAMES_S * INT64_C(1000000)))
        return;
    callers->looked = now;
    struct caller_names *names = names_new(callers);
    if (names == NULL)
        return;
    callers->work = work_run(callers->control->base, names_look, names_looked, names);
    callers->looking = callers->work != NULL ? names : NULL;
    if (callers->work == NULL)
        names_free(names);
}

int callers_new(struct control *control)
{
    struct callers *callers = control->callers = calloc(1, sizeof(*callers));
    if (callers == NULL)
        return PMIXFAB_ERR_NOMEM;
    callers->control = control;
    callers_look(callers, true);
    return PMIXFAB_OK;
}

void callers_free(struct callers *callers)
{
    if (callers == NULL)
        return;
    names_free(callers->names);
    struct caller_names *looked = callers->looking;
    if (callers->work != NULL && work_leave(callers->work, LEAVE_MS, names_free))
        names_free(looked);
    free(callers);
}

/* Return whether the user is among these names. */
static bool names_have(const struct caller_names *names, uid_t uid, bool delivers)
{
    for (unsigned i = 0; names != NULL && i < names->n; i++)
        if (names->list[i].known && names->list[i].uid == uid && (delivers || !names->list[i].delivers))
            return true;
    return false;
}

static bool callers_have(struct callers *callers, uid_t uid, bool delivers)
{
    if (uid == 0 || uid == geteuid())
        return true;
    if (callers->names == NULL && (callers->names = names_new(callers)) != NULL)
        names_look(callers->names); /* once after a reload, without waiting for the thread */
    const bool have = names_have(callers->names, uid, delivers);
    callers_look(callers, false); /* the user may have been added or removed since */
    return have;
}

bool callers_may_change(struct callers *callers, uid_t uid)
{
    return callers_have(callers, uid, false);
}

bool callers_may_deliver(struct callers *callers, uid_t uid)
{
    return callers_have(callers, uid, true);
}

bool callers_are_named(const struct callers *callers, uid_t uid)
{
    return uid == 0 || uid == geteuid() || names_have(callers->names, uid, true);
}
