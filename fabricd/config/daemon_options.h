/*
 * daemon_options.h - fabricd's command line over its configuration file.
 */
#ifndef FABRICD_CONFIG_DAEMON_OPTIONS_H
#define FABRICD_CONFIG_DAEMON_OPTIONS_H

#include "fabricd/config/config.h"

/*
 * Read the command line and the configuration file that it names (or /etc/fabricd.conf where that is there).
 * PMIXFAB_OK, or PMIXFAB_ERR_INVAL: bad usage or mistakes, told on standard error. --help and --version exit.
 */
int options_parse(int argc, char **argv, struct config *config);

/* To the folder of the first reading, in which relative names are meant: in the background the process leaves
 * it. */
void options_go_back(void);

/* The same, and the mistakes are the caller's to tell. config: as config_init() leaves it. */
int options_read(int argc, char **argv, struct config *config, struct config_mistakes *mistakes);

#endif
