/*
 * reload.h - the configuration is read again while the daemon runs.
 */
#ifndef FABRICD_CONFIG_RELOAD_H
#define FABRICD_CONFIG_RELOAD_H

#include "fabricd/config/config.h"

struct setting; /* setting.h */

/* What came of it. Either mistakes, and nothing has changed; or what has changed, and what would have if that
 * could change at run time. */
struct config_reload {
    struct config_mistakes mistakes;
    const struct setting *changed[CONFIG_MAX_SETTINGS], *restart[CONFIG_MAX_SETTINGS];
    unsigned n_changed, n_restart;
};

/* Read the command line's file again. On the loop: what is live may change under those who keep a pointer to
 * its text. */
int config_reload(struct config *config, struct config_reload *out);
void config_reload_destroy(struct config_reload *reload);

/* Would a start with this command line take its configuration now? Else err has the first mistake. */
int config_can_start(const struct config *config, struct fab_err *err);

/* Has the setting of this name changed? name NULL: the section that is a list. */
bool config_reload_has(const struct config_reload *reload, const char *section, const char *name);

/* "[fabricd] interval, [sweep.env]" */
#define CONFIG_NAMES_SIZE 1600
void config_names_text(const struct setting *const *settings, unsigned n,
                       char text[static CONFIG_NAMES_SIZE]);

/* One setting's name: "[fabricd] interval". */
#define CONFIG_NAME_SIZE 48
void config_name_text(const struct setting *setting, char text[static CONFIG_NAME_SIZE]);

#endif
