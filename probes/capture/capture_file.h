/*
 * capture_file.h - recorded fabrics: ibnetdiscover's text, libibnetdisc's cache and OpenSM's list of a
 * subnet.
 *
 * The readers take untrusted memory. `file` is the name for messages. inv is initialised and empty; on
 * success it is finished, on error it can only be destroyed.
 */
#ifndef FAB_PROBES_CAPTURE_CAPTURE_FILE_H
#define FAB_PROBES_CAPTURE_CAPTURE_FILE_H

#include <stdbool.h>

#include "probes/core/probe.h"
#include "topo/model/model.h"

extern const struct probe probe_file, probe_opensm_lst;

#define LINE_LIMIT 4096u /* bytes in a line of text; ibnetdiscover's are below 300 */

/*
 * Read ibnetdiscover's text, plain or grouped (-g), with -s, -f and -m or without; or its report of ports
 * (-p). Errors begin file:line:column. sink (may be NULL) gets remarks.
 */
int capture_parse(const char *file, const char *text, size_t len, const struct probe_sink *sink,
                  struct fab_inventory *inv, struct fab_err *err);

/* Read OpenSM's opensm-subnet.lst. As above. */
int subnet_parse(const char *file, const char *text, size_t len, const struct probe_sink *sink,
                 struct fab_inventory *inv, struct fab_err *err);

/* Return whether the bytes begin like a libibnetdisc cache. */
bool cache_is(const void *bytes, size_t len);

/* Read a cache. Errors begin file:byte. sink (may be NULL) gets remarks about omitted data. */
int cache_parse(const char *file, const void *bytes, size_t len, const struct probe_sink *sink,
                struct fab_inventory *inv, struct fab_err *err);

/*
 * ---- reading one line of a text from left to right ----
 *
 * Each scan_ function moves past the element that it reads. If the element is not there, the function keeps
 * the position and explains in err what was expected. The first failure stays: after it the other functions
 * do nothing.
 */

struct scan {
    const char *file;
    const char *line; /* start of the line */
    const char *at;   /* next byte */
    const char *end;  /* after its last byte; line ends are not part of it */
    uint32_t number;  /* from 1 */
    bool unended;     /* the last line, without a line end */
    size_t limit;     /* bytes in a line; 0: any */
    struct fab_err *err;
    int rc; /* of the first failure */
};

/*
 * Go to the next line of the text [*text, end) and move *text past it; a UTF-8 mark before the first one is
 * skipped. Return false at the end, or after a failure: a 0 byte, or a line that is too long.
 */
bool scan_next_line(struct scan *s, const char **text, const char *end);

/*
 * Report a failure at `place` in the line: "file:line:column: ...". The advice follows a semicolon. If the
 * text has no semicolon, the usual advice is added. Return s->rc. It is the code, or PMIXFAB_ERR_TRUNCATED if
 * the file ends inside this line, because that is the likelier reason.
 */
int scan_fail(struct scan *s, const char *place, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

uint32_t scan_column(const struct scan *s, const char *place);

/*
 * Read the next field up to the separator or the end, without the blanks around it, and move past that.
 * Return whether there was one.
 */
bool scan_field(struct scan *s, char separator, struct scan *field);

/* Skip blanks and tabs, if any. */
void scan_blank(struct scan *s);
/* Return whether this text is next, and move past it. */
bool scan_has(struct scan *s, const char *text);
/* Require this text. */
void scan_word(struct scan *s, const char *text);
/*
 * If the next word is in the list, return its value and move past the word. Return -1 if the word is not in
 * the list. A NULL word ends the list.
 */
struct scan_choice {
    const char *word;
    uint8_t value;
};
int scan_choice(struct scan *s, const struct scan_choice *words);
/* As above, for a required word: `expected` describes it. */
uint8_t scan_one_of(struct scan *s, const struct scan_choice *words, const char *expected);
/* Return the next position of this text in the line; NULL: the line does not have it. */
const char *scan_find(const struct scan *s, const char *text);
/* Read a decimal number from min to max, called `what` in errors. */
void scan_number(struct scan *s, const char *what, uint32_t min, uint32_t max, uint32_t *out);
/* Read 1 to 16 hexadecimal digits, at most `max`. */
void scan_hex(struct scan *s, const char *what, uint64_t max, uint64_t *out);
/* Read `"S-0123456789abcdef"`: letter (S, H, R, and ? for a node without a kind) and GUID. */
void scan_node(struct scan *s, char *letter, uint64_t *guid);
/* Read `[number]`, 1 to 254. */
void scan_port(struct scan *s, uint32_t *number);
/* Read a text in quotes up to the last quote of the line: descriptions may contain quotes. */
void scan_quoted(struct scan *s, const char **text, uint32_t *len);
/* Read "4xHDR", "??SDR", "4x???". */
void scan_rate(struct scan *s, uint8_t *width, uint8_t *speed);
/* Read the Gbit/s of a lane in any form: "25", "25.78125" or "FDR10". */
void scan_lane_speed(struct scan *s, uint8_t *speed);

#endif
