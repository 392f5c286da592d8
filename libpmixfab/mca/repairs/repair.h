/*
 * repair.h - repairs of the stock library, for a server program that answers fabric requests of others.
 *
 * Not called: a program that has repair_*.c among its own sources, and exports the symbols in it, gets the
 * calls that the library makes to itself (docs/design/pmix.md). Each repair names the versions that it was
 * read and tried with; with any other it hands the call to the library unchanged.
 */
#ifndef FAB_MCA_REPAIRS_REPAIR_H
#define FAB_MCA_REPAIRS_REPAIR_H

#include <stdbool.h>

/* What repairs are of. Each part has versions of its own (repair_versions.h). */
enum fab_repair_part {
    FAB_REPAIR_REQUESTS,    /* register, get, query */
    FAB_REPAIR_CONNECTIONS, /* who connects, what he sends, how it ends; events; munge */
    FAB_REPAIR_JOBS,        /* the same for processes of one's own jobs: the role host */
};

/* The running library is the one that they were compiled with, and they are for its version. */
bool fab_repair_known(enum fab_repair_part part);
/* All repairs are switched off. */
bool fab_repair_is_off(void);
/* A function of a known part that the running library does not call, or does not have itself: none of the
 * part is done then. NULL: all are reached. (repair_reached.c) */
const char *fab_repair_unreached(enum fab_repair_part part);
/* Why a part is not done with this library, behind "and": true. It is: false. (repair_reached.c) */
#define FAB_REPAIR_WHY 512
bool fab_repair_why_not(enum fab_repair_part part, char why[FAB_REPAIR_WHY]);
/* The part is known and reached, and not switched off. */
bool fab_repair_wanted(enum fab_repair_part part);

/* A warning, once a minute for each line: strangers must not fill the log. The line is a literal: its address
 * is its name. Any thread. (repair_log.c) */
void fab_repair_log(const char *line);

/* The host has deregistered the job: what the library keeps of those processes of it that are gone is
 * released. On the library's thread. (repair_leave.c) */
void fab_repair_job_forgotten(const char *nspace);

/* The library's own function of that name; NULL where it has none. */
void *fab_repair_original(const char *name);

#endif
