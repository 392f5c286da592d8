/* mistakes.h - what is wrong with a configuration: all of it, each with its place. */
#ifndef FABRICD_CONFIG_MISTAKES_H
#define FABRICD_CONFIG_MISTAKES_H

#include <stdint.h>

#define CONFIG_MAX_MISTAKES 100 /* that are told; of more only how many there are */

/* Where a setting comes from: line and column of the file, from 1; or no line. */
struct config_place {
    int line, column; /* column: in bytes */
};
enum { CONFIG_DEFAULT = 0, CONFIG_COMMAND_LINE = -1, CONFIG_RUN_TIME = -2 }; /* instead of a line */

struct config_mistake {
    struct config_place at;
    char *text; /* one line, with its place where it has one */
};

struct config_mistakes {
    const char *file;             /* that places are of; NULL: none was read */
    struct config_mistake *items; /* in the order of the file; without a line first */
    uint32_t n, room, more;       /* more: that are not kept */
};

/* Add one: "FILE:LINE:COLUMN: reason", or the reason alone where there is no line. Returns code. */
int config_mistake(struct config_mistakes *mistakes, int code, struct config_place at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The same of a reason that has a place of its own, in another file that the setting names. */
void config_mistake_there(struct config_mistakes *mistakes, struct config_place at, const char *text);

/* How many there are, also of those that are not kept. */
uint32_t config_mistakes_count(const struct config_mistakes *mistakes);

/* Tell each, and then how many are not told. */
void config_mistakes_tell(const struct config_mistakes *mistakes,
                          void (*tell)(const char *line, void *cbdata), void *cbdata);

void config_mistakes_destroy(struct config_mistakes *mistakes);

#endif
