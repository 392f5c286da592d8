/* setting.h - the table of settings: type, place and default of each. For this room. */
#ifndef FABRICD_CONFIG_SETTING_H
#define FABRICD_CONFIG_SETTING_H

#include "fabricd/config/config.h"

enum setting_type { TEXT, NUMBER, LIST, PAIRS, WORDS, ARGUMENTS, BOOLEAN, CHOICE };

struct setting {
    const char *section, *name; /* name NULL: the section is a list with lines NAME=VALUE */
    enum setting_type type;
    bool live; /* can change while the daemon runs */
    size_t offset;
    unsigned min, max, initial; /* of a NUMBER, and of a CHOICE, which is stored as its position */
    const char *const *choices;
    const char *text; /* of a TEXT: the default; NULL: none */
};

extern const struct setting config_settings[]; /* ends with an entry without a section */

#endif
