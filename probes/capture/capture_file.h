/*
 * capture_file.h - recorded fabrics: ibnetdiscover's text, libibnetdisc's cache and OpenSM's list of a
 * subnet.
 *
 * The readers take memory and believe nothing of it. `file` is the name for messages. inv is initialised and
 * empty; on success it is finished, on error of no use.
 */
#ifndef FAB_PROBES_CAPTURE_CAPTURE_FILE_H
#define FAB_PROBES_CAPTURE_CAPTURE_FILE_H

#include <stdbool.h>

#include "probes/core/probe.h"
#include "topo/model/model.h"

extern const struct probe probe_file, probe_opensm_lst;

#define LINE_LIMIT 4096u /* bytes in a line of text; ibnetdiscover's are below 300 */

/* ibnetdiscover's text, plain or grouped (-g), with -s, -f and -m or without; or its report of ports (-p).
 * Errors begin file:line:column. sink (may be NULL) gets remarks. */
int capture_parse(const char *file, const char *text, size_t len, const struct probe_sink *sink,
                  struct fab_inventory *inv, struct fab_err *err);

/* What OpenSM writes as opensm-subnet.lst. As above. */
int subnet_parse(const char *file, const char *text, size_t len, const struct probe_sink *sink,
                 struct fab_inventory *inv, struct fab_err *err);

/* Do the bytes begin like a libibnetdisc cache? */
bool cache_is(const void *bytes, size_t len);

/* A cache. Errors begin file:byte. sink (may be NULL) gets remarks on what was left out. */
int cache_parse(const char *file, const void *bytes, size_t len, const struct probe_sink *sink,
                struct fab_inventory *inv, struct fab_err *err);

/* ---- reading one line of a text from left to right ----
 *
 * Each scan_ function either moves behind what it names, or leaves the place and explains in err what was
 * expected there. The first failure stays: after it the others do nothing. */

struct scan {
    const char *file;
    const char *line; /* start of the line */
    const char *at;   /* next byte */
    const char *end;  /* behind its last byte; line ends are not part of it */
    uint32_t number;  /* from 1 */
    bool unended;     /* the last line, without a line end */
    size_t limit;     /* bytes in a line; 0: any */
    struct fab_err *err;
    int rc; /* of the first failure */
};

/*
 * The next line of the text [*text, end), which moves behind it; a mark of UTF-8 before the first one is
 * skipped. False at the end, or after a failure: a byte 0, a line that is too long.
 */
bool scan_next_line(struct scan *s, const char **text, const char *end);

/* Explain at `place` in the line: "file:line:column: ...". What to do goes behind a semicolon; without one
 * the usual advice is added. Returns s->rc: the code, or PMIXFAB_ERR_TRUNCATED when the file ends inside this
 * line, because that is the likelier reason. */
int scan_fail(struct scan *s, const char *place, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

uint32_t scan_column(const struct scan *s, const char *place);

/* The next field, without the blanks around it, up to the separator or the end; moves behind that. Is there
 * another one? */
bool scan_field(struct scan *s, char separator, struct scan *field);

/* Blanks and tabs, none allowed. */
void scan_blank(struct scan *s);
/* Does this text come next? Moves behind it. */
bool scan_has(struct scan *s, const char *text);
/* This text must come next. */
void scan_word(struct scan *s, const char *text);
/* The value of the word of the list that comes next, moving behind it; -1: none of them does. A NULL word
 * ends it. */
struct scan_choice {
    const char *word;
    uint8_t value;
};
int scan_choice(struct scan *s, const struct scan_choice *words);
/* The same of a word that must come next: `expected` says what. */
uint8_t scan_one_of(struct scan *s, const struct scan_choice *words, const char *expected);
/* Where this text stands next in the line; NULL: nowhere. */
const char *scan_find(const struct scan *s, const char *text);
/* A decimal number from min to max, called `what` in errors. */
void scan_number(struct scan *s, const char *what, uint32_t min, uint32_t max, uint32_t *out);
/* 1 to 16 hexadecimal digits, at most `max`. */
void scan_hex(struct scan *s, const char *what, uint64_t max, uint64_t *out);
/* `"S-0123456789abcdef"`: letter (S, H, R, and ? where the node said no kind) and GUID. */
void scan_node(struct scan *s, char *letter, uint64_t *guid);
/* `[number]`, 1 to 254. */
void scan_port(struct scan *s, uint32_t *number);
/* A text in quotes up to the last quote of the line: descriptions may have quotes inside. */
void scan_quoted(struct scan *s, const char **text, uint32_t *len);
/* "4xHDR", "??SDR", "4x???". */
void scan_rate(struct scan *s, uint8_t *width, uint8_t *speed);
/* The Gbit/s of a lane, whatever is counted: "25", "25.78125"; or "FDR10". */
void scan_lane_speed(struct scan *s, uint8_t *speed);

#endif
