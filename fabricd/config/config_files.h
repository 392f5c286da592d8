/* config_files.h - what the configuration names in the file system: can the daemon use it? */
#ifndef FABRICD_CONFIG_CONFIG_FILES_H
#define FABRICD_CONFIG_CONFIG_FILES_H

#include "fabricd/config/config.h"

/*
 * The store's folder, the hook and the commands of exports, the names, the folder of the metrics. Whether
 * they can be used is asked for the user that this process runs as; with --check-config as root for
 * CONFIG_SERVICE_USER, where there is one.
 */
void config_check_files(const struct config *config, struct config_mistakes *mistakes);

#define CONFIG_SERVICE_USER "fabricd" /* as the unit has it */

#endif
