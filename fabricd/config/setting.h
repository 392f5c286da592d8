/* setting.h - the table of settings: each one's type, place and default. For this room. */
#ifndef FABRICD_CONFIG_SETTING_H
#define FABRICD_CONFIG_SETTING_H

#include "fabricd/config/config.h"

enum setting_type { TEXT, NUMBER, LIST, PAIRS, WORDS, ARGUMENTS, BOOLEAN, CHOICE };

struct setting {
    const char *section, *name; /* name NULL: the section is the list, each of its lines is NAME=VALUE */
    enum setting_type type;
    bool live; /* can change while the daemon runs */
    size_t offset;
    unsigned min, max, initial; /* NUMBER, and CHOICE, which is stored as its position */
    const char *const *choices;
    const char *text; /* TEXT: the default, NULL: none */
};

extern const struct setting config_settings[]; /* ended by an entry without a section */

#endif
