/* file_scan.c - the words and numbers in a line of a capture. */
#include "probes/capture/capture_file.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "topo/base/text.h"

uint32_t scan_column(const struct scan *s, const char *place)
{
    return (uint32_t)(place - s->line) + 1;
}

int scan_fail(struct scan *s, const char *place, int code, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    if (s->rc != PMIXFAB_OK)
        return s->rc;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (s->unended && code == PMIXFAB_ERR_SYNTAX)
        s->rc = fab_fail(s->err, PMIXFAB_ERR_TRUNCATED,
                         "%s:%" PRIu32 ":%" PRIu32 ": the file ends inside this line (%s); record it again",
                         s->file, s->number, scan_column(s, s->end), text);
    else
        s->rc = fab_fail(s->err, code, "%s:%" PRIu32 ":%" PRIu32 ": %s%s", s->file, s->number,
                         scan_column(s, place), text,
                         strchr(fmt, ';') != NULL ? "" : "; mend this line or record the file again");
    return s->rc;
}

/*
 * Skip a terminal's control sequences before the line, such as `ESC [ ? 2004 l` and a carriage return:
 * script(1) records them before the first line of a command's output.
 */
static void skip_controls(struct scan *s)
{
    const char *c = s->line;
    while (c < s->end && (*c == '\r' || (*c == '\x1b' && c + 1 < s->end && c[1] == '['))) {
        if (*c++ == '\r')
            continue;
        for (c++; c < s->end && (*c < '@' || *c > '~');)
            c++;
        c += c < s->end;
    }
    s->line = s->at = c;
}

bool scan_next_line(struct scan *s, const char **text, const char *end)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (s->number == 0 && end - *text >= 3 && memcmp(*text, mark, 3) == 0)
        *text += 3;
    if (*text >= end || s->rc != PMIXFAB_OK)
        return false;
    const char *stop = memchr(*text, '\n', (size_t)(end - *text));
    s->line = s->at = *text;
    s->unended = stop == NULL;
    s->end = stop != NULL ? stop : end;
    s->number++;
    *text = stop != NULL ? stop + 1 : end;
    if (s->end > s->line && s->end[-1] == '\r')
        s->end--;
    skip_controls(s);
    const size_t n = (size_t)(s->end - s->line);
    const char *zero = memchr(s->line, '\0', s->limit != 0 && n > s->limit ? s->limit : n);
    if (zero != NULL)
        scan_fail(s, zero, PMIXFAB_ERR_FOREIGN, "a 0 byte: this is neither a text nor a fabric cache");
    else if (s->limit != 0 && n > s->limit)
        scan_fail(s, s->line + s->limit, PMIXFAB_ERR_RANGE, "the line is longer than %zu bytes", s->limit);
    return s->rc == PMIXFAB_OK;
}

void scan_blank(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
        s->at++;
}

bool scan_field(struct scan *s, char separator, struct scan *field)
{
    const char *stop = memchr(s->at, separator, (size_t)(s->end - s->at));
    *field = *s;
    field->end = stop != NULL ? stop : s->end;
    scan_blank(field);
    while (field->end > field->at && (field->end[-1] == ' ' || field->end[-1] == '\t'))
        field->end--;
    field->unended = s->unended && stop == NULL;
    s->at = stop != NULL ? stop + 1 : s->end;
    return stop != NULL;
}

bool scan_has(struct scan *s, const char *text)
{
    size_t len = strlen(text);
    if (s->rc != PMIXFAB_OK || (size_t)(s->end - s->at) < len || memcmp(s->at, text, len) != 0)
        return false;
    s->at += len;
    return true;
}

void scan_word(struct scan *s, const char *text)
{
    if (!scan_has(s, text))
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "expected `%s`", text);
}

int scan_choice(struct scan *s, const struct scan_choice *words)
{
    for (; words->word != NULL; words++)
        if (scan_has(s, words->word))
            return words->value;
    return -1;
}

uint8_t scan_one_of(struct scan *s, const struct scan_choice *words, const char *expected)
{
    const int value = scan_choice(s, words);
    if (value < 0)
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "expected %s", expected);
    return (uint8_t)(value < 0 ? 0 : value);
}

const char *scan_find(const struct scan *s, const char *text)
{
    return memmem(s->at, (size_t)(s->end - s->at), text, strlen(text));
}

void scan_number(struct scan *s, const char *what, uint32_t min, uint32_t max, uint32_t *out)
{
    const char *p = s->at;
    uint64_t v = 0;
    while (p < s->end && *p >= '0' && *p <= '9') {
        if (v <= UINT32_MAX) /* more digits only make it larger */
            v = v * 10 + (uint64_t)(*p - '0');
        p++;
    }
    if (p == s->at)
        scan_fail(s, p, PMIXFAB_ERR_SYNTAX, "expected a number: %s", what);
    else if (v < min || v > max)
        scan_fail(s, s->at, PMIXFAB_ERR_RANGE, "%s %.*s is not in %" PRIu32 " to %" PRIu32, what,
                  (int)(p - s->at > 40 ? 40 : p - s->at), s->at, min, max);
    if (s->rc != PMIXFAB_OK)
        return;
    s->at = p;
    *out = (uint32_t)v;
}

void scan_hex(struct scan *s, const char *what, uint64_t max, uint64_t *out)
{
    const char *p = s->at;
    uint64_t v = 0;
    bool over = false;
    for (int d; p < s->end && (d = fab_hex_digit(*p)) >= 0; p++) {
        over = over || v >> 60 != 0;
        v = v << 4 | (uint64_t)d;
    }
    if (p == s->at)
        scan_fail(s, p, PMIXFAB_ERR_SYNTAX, "expected a hexadecimal number: %s", what);
    else if (over || v > max)
        scan_fail(s, s->at, PMIXFAB_ERR_RANGE, "%s %.*s is larger than 0x%" PRIx64, what,
                  (int)(p - s->at > 40 ? 40 : p - s->at), s->at, max);
    if (s->rc != PMIXFAB_OK)
        return;
    s->at = p;
    *out = v;
}

void scan_node(struct scan *s, char *letter, uint64_t *guid)
{
    const char *start = s->at;
    if (s->end - s->at < 3 || s->at[0] != '"' || s->at[1] == '\0' || strchr("SHR?", s->at[1]) == NULL ||
        s->at[2] != '-')
        scan_fail(s, start, PMIXFAB_ERR_SYNTAX, "expected a node: \"S-, \"H- or \"R- and its GUID");
    if (s->rc != PMIXFAB_OK)
        return;
    *letter = s->at[1];
    s->at += 3;
    scan_hex(s, "node GUID", UINT64_MAX, guid);
    scan_word(s, "\"");
    if (s->rc == PMIXFAB_OK && *guid == 0)
        scan_fail(s, start, PMIXFAB_ERR_RANGE, "a node GUID of zero");
}

void scan_port(struct scan *s, uint32_t *number)
{
    scan_word(s, "[");
    scan_number(s, "port", 1, 254, number);
    scan_word(s, "]");
}

void scan_quoted(struct scan *s, const char **text, uint32_t *len)
{
    const char *first = s->at + 1, *last = NULL;
    if (s->at >= s->end || *s->at != '"')
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "expected a name in double quotes");
    else if ((last = memrchr(first, '"', (size_t)(s->end - first))) == NULL)
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "this quote is not closed");
    if (s->rc != PMIXFAB_OK)
        return;
    *text = first;
    *len = (uint32_t)(last - first);
    s->at = last + 1;
}

void scan_rate(struct scan *s, uint8_t *width, uint8_t *speed)
{
    const char *start = s->at;
    uint32_t lanes = 0;
    if (scan_has(s, "??") || scan_has(s, "?x") || scan_has(s, "?") || scan_has(s, "UNKNOWN")) {
        scan_has(s, "x");
    } else {
        scan_number(s, "link width", 1, 12, &lanes);
        scan_word(s, "x");
        if (lanes != 1 && lanes != 2 && lanes != 4 && lanes != 8 && lanes != 12)
            scan_fail(s, start, PMIXFAB_ERR_RANGE, "link width %ux is not 1x, 2x, 4x, 8x or 12x", lanes);
    }
    scan_blank(s); /* in a report of ports */
    const char *word = s->at;
    while (s->at < s->end && *s->at != ' ' && *s->at != '\t')
        s->at++;
    size_t len = (size_t)(s->at - word);
    enum fab_speed found = fab_speed_parse(word, len);
    bool unknown = len > 0 && ((len <= 3 && memcmp(word, "???", len) == 0) ||
                               (len == 7 && memcmp(word, "UNKNOWN", len) == 0));
    if (found == FAB_SPEED_UNKNOWN && !unknown)
        scan_fail(s, word, PMIXFAB_ERR_SYNTAX,
                  "\"%.*s\" is not a link speed: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR or ???",
                  (int)(len > 40 ? 40 : len), word);
    *width = (uint8_t)lanes;
    *speed = (uint8_t)found;
}

void scan_lane_speed(struct scan *s, uint8_t *speed)
{
    uint32_t gbits = 0;
    *speed = FAB_FDR10;
    if (scan_has(s, "FDR10"))
        return;
    *speed = FAB_SPEED_UNKNOWN;
    scan_number(s, "link speed in Gbit/s", 1, 1000, &gbits);
    if (scan_has(s, "."))
        while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
            s->at++;
    for (enum fab_speed each = FAB_SDR; each <= FAB_XDR; each++)
        if (each != FAB_FDR10 && fab_rate_mbps(1, each) / 1000 <= gbits)
            *speed = (uint8_t)each;
}
