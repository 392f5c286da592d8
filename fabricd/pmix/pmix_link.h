/*
 * pmix_link.h - the interface between fabricd and its PMIx server, the program fabricd-pmix, in addition to
 * the run directory. fabricd sends settings, and the server sends a status. The listening socket outlives the
 * server. The room pmix starts that program, or watches the one that the service manager has started. Both
 * programs include this file.
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

/* Write the settings: role, host, permitted users, address, log level. PMIXFAB_ERR_IO. */
int pmix_settings_write(const struct config *config, struct fab_err *err);
void pmix_settings_remove(const struct config *config);

/*
 * Read the settings into a config that config_init() made. *text becomes the file's text, to detect
 * changes. Free it with free(). `text` may be NULL. PMIXFAB_ERR_NOTFOUND: fabricd has not written the file
 * yet; _CORRUPT; _PERM: a user other than root, the owner of the run directory and the caller's user may
 * have written it.
 */
int pmix_settings_read(const char *rundir, struct config *out, char **text, struct fab_err *err);

/* ---- status: one line of JSON ---- */

struct pmix_state {
    pid_t pid;
    char uri[512];       /* "": it does not serve yet */
    char failed[300];    /* the reason why it cannot serve; "": none */
    uint64_t generation; /* the served generation whose UPDATED was raised */
    unsigned connected, subscribers;
    bool filtered, confined, bounded; /* active restrictions of the process */
    bool guarded;                     /* the guard is loaded */
};

void pmix_state_write(const struct pmix_state *state, char line[PMIX_STATUS_MAX]);
/* Parse a status line. False: it is not one. */
bool pmix_state_read(const char *line, size_t size, struct pmix_state *out);

/* ---- the listening socket, over a socket pair ---- */

/* Send a descriptor. fd -1: none. False: the other side has closed. */
bool pmix_give_socket(int channel, int fd);
/* Wait for a descriptor from the other side; *fd -1: none. False: the other side has closed. */
bool pmix_take_socket(int channel, int *fd);

#endif
