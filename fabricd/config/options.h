/*
 * options.h - fabricd's command line over its configuration file.
 */
#ifndef FABRICD_CONFIG_OPTIONS_H
#define FABRICD_CONFIG_OPTIONS_H

#include "fabricd/config/config.h"

/*
 * Read the command line and the configuration file that it names (or /etc/fabricd.conf where that is there).
 * PMIXFAB_OK, or PMIXFAB_ERR_INVAL: bad usage, told on standard error. --help and --version exit.
 */
int options_parse(int argc, char **argv, struct config *config);

#endif
