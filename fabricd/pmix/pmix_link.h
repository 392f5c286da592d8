/*
 * pmix_link.h - what fabricd and its PMIx server, the program fabricd-pmix, hand to each other beside the run
 * directory: settings in one direction, a status in the other, and the listening socket, which outlives the
 * server. The room pmix starts that program, or looks at the one that the service manager has started. This
 * file is for both programs.
 */
#ifndef FABRICD_PMIX_PMIX_LINK_H
#define FABRICD_PMIX_PMIX_LINK_H

#include <sys/types.h>

#include "fabricd/config/config.h"

#define PMIX_PROGRAM     "fabricd-pmix"
#define PMIX_USER        "fabricd-pmix"
#define PMIX_STATUS_FILE "status.json" /* in the folder of a server that the service manager starts */
#define PMIX_STATUS_MAX  1024u         /* bytes of a status line */

/* ---- settings: RUNDIR/fabricd.json ---- */

/* Role, host, who may connect, where to listen, log level. PMIXFAB_ERR_IO. */
int pmix_settings_write(const struct config *config, struct fab_err *err);
void pmix_settings_remove(const struct config *config);

/* Into a config that config_init() made; *text is the file's, to see whether it has changed: free(). NULL:
 * that is of no interest. PMIXFAB_ERR_NOTFOUND: no fabricd has written it yet; _CORRUPT, _PERM: nobody but
 * root, the owner of the run directory and the caller's user may have written it. */
int pmix_settings_read(const char *rundir, struct config *out, char **text, struct fab_err *err);

/* ---- status: one line of JSON ---- */

struct pmix_state {
    pid_t pid;
    char uri[512];       /* "": it does not serve yet */
    char failed[300];    /* why it cannot; "": it can */
    uint64_t generation; /* of what it serves, once its UPDATED was raised */
    unsigned connected, subscribers;
    bool filtered, confined, bounded; /* what it forbids itself */
    bool guarded;                     /* it has the guard */
};

void pmix_state_write(const struct pmix_state *state, char line[PMIX_STATUS_MAX]);
/* False: it is none. */
bool pmix_state_read(const char *line, size_t size, struct pmix_state *out);

/* ---- the listening socket, over a socket pair ---- */

/* fd -1: there is none. False: the other side is gone. */
bool pmix_give_socket(int channel, int fd);
/* Wait for what the other side gives; *fd -1: nothing. False: it is gone. */
bool pmix_take_socket(int channel, int *fd);

#endif
