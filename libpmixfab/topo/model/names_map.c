/*
 * names_map.c - split a node description or a mapped name, by the default patterns or an operator's own. Read
 * a node-name-map. Its lines have a GUID, white space and a name in double quotes, and # begins a comment.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"
#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/base/text.h"
#include "topo/model/names_priv.h"

/* ---- descriptions ---------------------------------------------------------------------------------- */

#define DIGITS "0123456789"
#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/*
 * Return whether udev named the device by its GUID, "ibx98039b03000a1b2c": [a-z]+x[0-9a-f]{12,16}. It may end
 * with a letter.
 */
static bool is_called_by_guid(const char *s)
{
    const char *x = strrchr(s, 'x'); /* not a digit */
    if (x == NULL || x == s || s + strspn(s, LOWER) < x)
        return false;
    const size_t digits = strspn(x + 1, DIGITS "abcdef");
    return digits >= 12 && digits <= 16 && x[1 + digits] == '\0';
}

/* Return whether the text is HCA-[0-9]+, [a-z][a-z0-9_]*[0-9], or a name by GUID. */
static bool name_is_device(const char *s)
{
    if (strncmp(s, "HCA-", 4) == 0) {
        size_t digits = strspn(s + 4, DIGITS);
        return digits > 0 && s[4 + digits] == '\0';
    }
    const size_t n = strspn(s, LOWER DIGITS "_");
    return n > 0 && s[n] == '\0' && strspn(s, LOWER) > 0 &&
           (strspn(s + n - 1, DIGITS) > 0 || is_called_by_guid(s));
}

/*
 * Match FAB_NAMES_PATTERN without regexec(), which takes a microsecond for each name: most of the time for
 * naming a fabric.
 */
static bool match_default(const char *text, struct names_split *out)
{
    const size_t n = strspn(text, LOWER UPPER DIGITS "._-");
    if (!isalnum((unsigned char)text[0]))
        return false;
    *out = (struct names_split){.host = text, .host_len = n};
    if (text[n] == '\0')
        return true;
    size_t gap = strspn(text + n, " ");
    if (gap == 0 || !name_is_device(text + n + gap))
        return false;
    out->device = text + n + gap;
    out->device_len = strlen(out->device);
    return true;
}

/* Return whether it is "MT4123", "MT25408": the description of an HCA until its host names it. */
static bool is_factory_name(const struct names_split *s)
{
    if (s->device != NULL || s->host_len < 6 || strncmp(s->host, "MT", 2) != 0)
        return false;
    return strspn(s->host + 2, DIGITS) == s->host_len - 2;
}

static bool has_group(const regmatch_t *group)
{
    return group->rm_so >= 0 && group->rm_eo > group->rm_so;
}

static bool match_regex(const struct fab_pattern *pattern, const char *text, struct names_split *out)
{
    regmatch_t groups[NAMES_GROUPS];
    const size_t last = pattern->regex.re_nsub;

    if (regexec(&pattern->regex, text, NAMES_GROUPS, groups, 0) != 0 || !has_group(&groups[1]))
        return false;
    *out = (struct names_split){.host = text + groups[1].rm_so,
                                .host_len = (size_t)(groups[1].rm_eo - groups[1].rm_so)};
    if (last > 1 && has_group(&groups[last])) {
        out->device = text + groups[last].rm_so;
        out->device_len = (size_t)(groups[last].rm_eo - groups[last].rm_so);
    }
    return true;
}

bool names_split_text(const struct fab_names *names, const char *text, struct names_split *out)
{
    if (names->hosts.compiled)
        return match_regex(&names->hosts, text, out);
    return match_default(text, out) && !is_factory_name(out);
}

/* ---- switches -------------------------------------------------------------------------------------- */

/* Make NAME of "MF0;NAME:MODEL/U1", and NAME/L04/U1 of "MF0;NAME:MODEL/L04/U1", a chip of a director. */
static bool switch_default(const char *desc, char out[NAMES_MAX_SIZE])
{
    if (strncmp(desc, "MF0;", 4) != 0)
        return false;
    const char *name = desc + 4, *chip = strchr(name, '/');
    const char *colon = chip == NULL ? NULL : memrchr(name, ':', (size_t)(chip - name));
    if (colon == NULL || colon == name)
        return false;
    size_t len = (size_t)(colon - name);
    name = fab_text_trim(name, &len);
    snprintf(out, NAMES_MAX_SIZE, "%.*s%s", (int)len, name, strcmp(chip, "/U1") == 0 ? "" : chip);
    return len > 0;
}

/* Join the groups that match. */
static bool switch_regex(const struct fab_pattern *pattern, const char *desc, char out[NAMES_MAX_SIZE])
{
    regmatch_t groups[NAMES_GROUPS];
    char text[NAMES_DESC_MAX + 1];
    size_t n = 0;

    snprintf(text, sizeof(text), "%.*s", NAMES_DESC_MAX, desc);
    out[0] = '\0';
    if (regexec(&pattern->regex, text, NAMES_GROUPS, groups, 0) != 0)
        return false;
    for (size_t i = 1; i <= pattern->regex.re_nsub; i++)
        if (has_group(&groups[i]) && n + NAMES_DESC_MAX < NAMES_MAX_SIZE)
            n += (size_t)snprintf(out + n, NAMES_MAX_SIZE - n, "%.*s",
                                  (int)(groups[i].rm_eo - groups[i].rm_so), text + groups[i].rm_so);
    return n > 0;
}

void names_switch_text(const struct fab_names *names, const char *desc, char out[NAMES_MAX_SIZE])
{
    const struct fab_pattern *own = &names->switches;
    if (!(own->compiled ? switch_regex(own, desc, out) : switch_default(desc, out)))
        snprintf(out, NAMES_MAX_SIZE, "%s", desc);
}

/* ---- patterns -------------------------------------------------------------------------------------- */

/* whose, part: for the message. */
static int pattern_compile(struct fab_pattern *out, const char *pattern, const char *whose, const char *what,
                           struct fab_err *err)
{
    char reason[160];
    int rc = regcomp(&out->regex, pattern, REG_EXTENDED);
    if (rc != 0) {
        regerror(rc, &out->regex, reason, sizeof(reason));
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "%s pattern \"%s\": %s", whose, pattern, reason);
    }
    if (out->regex.re_nsub < 1 || out->regex.re_nsub >= NAMES_GROUPS) {
        regfree(&out->regex);
        return fab_fail(err, PMIXFAB_ERR_SYNTAX,
                        "%s pattern \"%s\": put the part with the %s in parentheses (1 to 9 groups)", whose,
                        pattern, what);
    }
    out->compiled = true;
    return PMIXFAB_OK;
}

int fab_names_switches(struct fab_names *names, const char *pattern, struct fab_err *err)
{
    return pattern == NULL ? PMIXFAB_OK : pattern_compile(&names->switches, pattern, "switch", "name", err);
}

int fab_names_new(const char *pattern, struct fab_names **out, struct fab_err *err)
{
    *out = NULL;
    struct fab_names *names = calloc(1, sizeof(*names));
    if (names == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    int rc = pattern == NULL || strcmp(pattern, FAB_NAMES_PATTERN) == 0
                 ? PMIXFAB_OK
                 : pattern_compile(&names->hosts, pattern, "host", "host", err);
    if (rc == PMIXFAB_OK)
        *out = names;
    else
        free(names);
    return rc;
}

void fab_names_free(struct fab_names *names)
{
    if (names == NULL)
        return;
    if (names->hosts.compiled)
        regfree(&names->hosts.regex);
    if (names->switches.compiled)
        regfree(&names->switches.regex);
    for (uint32_t i = 0; i < names->n_map; i++)
        free(names->map[i].name);
    free(names->map);
    free(names);
}

/* ---- mapped names ---------------------------------------------------------------------------------- */

/*
 * Mapped names of several words: "node7 mlx5_0", "node7 MT4119 ConnectX5", "login 1".
 *
 * A name that the pattern matches is a host and a device. In other names the host is the first word, as for
 * other readers of these maps. If the first word alone cannot be a host, the host is the whole name. This is
 * so if the first word has no digit and a number follows ("login 1"), or if another name of the map begins
 * with this word and continues differently.
 */
#define BLANKS " \t"

static bool fits_pattern(const struct fab_names *names, const char *text, struct names_split *out)
{
    return strlen(text) <= NAMES_DESC_MAX && strpbrk(text, BLANKS) != NULL &&
           names_split_text(names, text, out);
}

static size_t first_word(const char *name)
{
    return strcspn(name, BLANKS);
}

static const char *behind_first_word(const char *name)
{
    name += first_word(name);
    return name + strspn(name, BLANKS);
}

/* Return whether the first word may be a host's name. */
static bool begins_with_host(const char *name)
{
    const size_t len = first_word(name);
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && (i == 0 || strchr("._-", name[i]) == NULL))
            return false;
    return true;
}

/* Return whether one of the words is a number: "1", "rack 7". */
static bool has_number(const char *words)
{
    while (*words != '\0') {
        const size_t len = first_word(words);
        if (len > 0 && strspn(words, "0123456789") == len)
            return true;
        words = behind_first_word(words);
    }
    return false;
}

static int compare_names(const void *a, const void *b)
{
    const struct fab_map_entry *x = *(struct fab_map_entry *const *)a, *y = *(struct fab_map_entry *const *)b;
    const size_t in_x = first_word(x->name), in_y = first_word(y->name);
    return memcmp(x->name, y->name, in_x < in_y ? in_x : in_y) ?: (in_x > in_y) - (in_x < in_y);
}

static int names_first_words(struct fab_names *names)
{
    struct fab_map_entry **order = malloc(((size_t)names->n_map + 1) * sizeof(*order));
    uint32_t n = 0;
    if (order == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < names->n_map; i++) {
        struct fab_map_entry *entry = &names->map[i];
        struct names_split split;
        entry->whole = false;
        if (strpbrk(entry->name, BLANKS) == NULL || fits_pattern(names, entry->name, &split))
            continue;
        entry->whole = !begins_with_host(entry->name);
        if (strcspn(entry->name, "0123456789") > first_word(entry->name)) /* "node7" alone is a host's name */
            order[n++] = entry;
    }
    qsort(order, n, sizeof(struct fab_map_entry *), compare_names);
    for (uint32_t from = 0, to = 0; from < n; from = to) {
        const char *rest = behind_first_word(order[from]->name);
        bool whole = has_number(rest);
        for (; to < n && compare_names(&order[from], &order[to]) == 0; to++)
            whole = whole || strcmp(behind_first_word(order[to]->name), rest) != 0;
        for (uint32_t i = from; i < to; i++)
            order[i]->whole = order[i]->whole || whole;
    }
    free(order);
    return PMIXFAB_OK;
}

void names_split_mapped(const struct fab_names *names, const struct fab_map_entry *entry,
                        char text[NAMES_MAX_SIZE], struct names_split *out)
{
    snprintf(text, NAMES_MAX_SIZE, "%s", entry->name);
    if (fits_pattern(names, text, out))
        return;
    if (!entry->whole) {
        const char *rest = behind_first_word(text);
        text[(size_t)(rest - text) + first_word(rest)] = '\0'; /* "node7 mlx5_0 (spare)" */
        if (fits_pattern(names, text, out))
            return;
        text[first_word(text)] = '\0';
    }
    *out = (struct names_split){.host = text, .host_len = strlen(text)};
}

/* ---- reading a map --------------------------------------------------------------------------------- */

#define NAME_LENGTH 255

/* The reader's position. */
struct reader {
    const char *file;
    const char *at, *line_start, *end; /* end: of the line */
    uint32_t line;
    struct fab_err *err;
    void (*tell)(const char *mistake, void *cbdata); /* NULL: the first mistake ends reading */
    void *cbdata;
};

/* Entries in the order of reading. */
struct entries {
    struct fab_map_entry *list;
    uint32_t n, cap;
};

__attribute__((format(printf, 3, 4))) static int map_reject(const struct reader *r, int code, const char *fmt,
                                                            ...)
{
    struct fab_err made;
    va_list args;

    va_start(args, fmt);
    fab_vfail(&made, code, fmt, args);
    va_end(args);
    return fab_fail(r->err, code, "%s:%" PRIu32 ":%zu: %s", r->file, r->line,
                    (size_t)(r->at - r->line_start) + 1, made.text);
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
}

static bool at_line_end(const struct reader *r)
{
    return r->at == r->end || *r->at == '#';
}

static int map_read_guid(struct reader *r, uint64_t *guid)
{
    const char *start = r->at;

    *guid = 0;
    if (r->end - r->at < 3 || r->at[0] != '0' || (r->at[1] | 0x20) != 'x' || fab_hex_digit(r->at[2]) < 0)
        return map_reject(r, PMIXFAB_ERR_SYNTAX, "expected a node GUID (0x and up to 16 hexadecimal digits)");
    for (r->at += 2; r->at < r->end && fab_hex_digit(*r->at) >= 0; r->at++) {
        if (*guid >> 60 != 0) {
            r->at = start;
            return map_reject(r, PMIXFAB_ERR_RANGE, "a GUID has at most 16 hexadecimal digits");
        }
        *guid = *guid << 4 | (unsigned)fab_hex_digit(*r->at);
    }
    if (r->at < r->end && *r->at != ' ' && *r->at != '\t')
        return map_reject(r, PMIXFAB_ERR_SYNTAX,
                          "expected white space and a name in double quotes after the GUID");
    if (*guid == 0) {
        r->at = start;
        return map_reject(r, PMIXFAB_ERR_RANGE, "GUID 0 is not valid");
    }
    return 0;
}

/* Read a name in quotes, followed by nothing but a comment. */
static int read_name(struct reader *r, const char **name, size_t *len)
{
    skip_blanks(r);
    if (r->at == r->end || *r->at != '"')
        return map_reject(r, PMIXFAB_ERR_SYNTAX, "expected a name in double quotes");
    const char *start = r->at + 1;
    const char *close = memchr(start, '"', (size_t)(r->end - start));
    if (close == NULL)
        return map_reject(r, PMIXFAB_ERR_SYNTAX, "the name's closing quote is missing");
    *name = start;
    *len = (size_t)(close - start);
    if (memchr(start, '\0', *len) != NULL)
        return map_reject(r, PMIXFAB_ERR_SYNTAX, "a 0 byte in a name");
    if (*len > NAME_LENGTH)
        return map_reject(r, PMIXFAB_ERR_RANGE, "a name of %zu bytes; at most %d are allowed", *len,
                          NAME_LENGTH);
    *name = fab_text_trim(start, len);
    if (*len == 0)
        return map_reject(r, PMIXFAB_ERR_SYNTAX, "an empty name");
    r->at = close + 1;
    skip_blanks(r);
    if (!at_line_end(r))
        return map_reject(r, PMIXFAB_ERR_SYNTAX,
                          "expected the end of the line or a # comment after the name");
    return 0;
}

static int map_append(struct entries *entries, struct fab_map_entry entry, const char *name, size_t len)
{
    entry.name = FAB_ARRAY_ROOM(&entries->list, &entries->cap, entries->n + 1) ? strndup(name, len) : NULL;
    if (entry.name == NULL)
        return PMIXFAB_ERR_NOMEM;
    entries->list[entries->n++] = entry;
    return 0;
}

static int map_read_line(struct reader *r, struct entries *entries)
{
    struct fab_map_entry entry = {.line = r->line};
    const char *name = "";
    size_t len = 0;

    skip_blanks(r);
    if (at_line_end(r))
        return 0;
    entry.column = (uint32_t)(r->at - r->line_start) + 1;
    int rc = map_read_guid(r, &entry.guid) ?: read_name(r, &name, &len);
    if (rc == 0 && map_append(entries, entry, name, len) != 0)
        rc = map_reject(r, PMIXFAB_ERR_NOMEM, "out of memory");
    return rc;
}

/* Report a mistake; if mistakes are collected, reading continues. */
static int map_told(const struct reader *r, int rc)
{
    if (rc == 0 || rc == PMIXFAB_ERR_NOMEM || r->tell == NULL)
        return rc;
    r->tell(r->err->text, r->cbdata);
    return 0;
}

static int compare_entries(const void *a, const void *b)
{
    const struct fab_map_entry *x = a, *y = b;
    return FAB_ORDER(x->guid, y->guid) ?: FAB_ORDER(x->line, y->line);
}

/* Sort. A GUID with two names is an error; a repeated line is not. */
static int sort_entries(struct entries *entries, const struct reader *r)
{
    uint32_t kept = 0;
    int rc = 0;

    if (entries->n == 0)
        return 0;
    qsort(entries->list, entries->n, sizeof(*entries->list), compare_entries);
    for (uint32_t i = 1; i < entries->n && rc == 0; i++) {
        const struct fab_map_entry *a = &entries->list[i - 1], *b = &entries->list[i];
        if (a->guid == b->guid && strcmp(a->name, b->name) != 0)
            rc = map_told(r, fab_fail(r->err, PMIXFAB_ERR_CONFLICT,
                                      "%s:%" PRIu32 ":%" PRIu32 ": node 0x%016" PRIx64
                                      " is called \"%s\" here and \"%s\" in line %" PRIu32,
                                      r->file, b->line, b->column, b->guid, b->name, a->name, a->line));
    }
    if (rc != 0)
        return rc;
    for (uint32_t i = 1; i < entries->n; i++) {
        if (entries->list[i].guid == entries->list[kept].guid)
            free(entries->list[i].name);
        else
            entries->list[++kept] = entries->list[i];
    }
    entries->n = kept + 1;
    return 0;
}

/* Add the entries of a later file, which have priority. Takes all of `added`, or nothing. */
static int take_entries(struct fab_names *names, struct entries *added)
{
    struct fab_map_entry *all = malloc(((size_t)names->n_map + added->n + 1) * sizeof(*all));
    uint32_t n = 0, old = 0, new = 0;

    if (all == NULL)
        return PMIXFAB_ERR_NOMEM;
    while (old < names->n_map || new < added->n) {
        if (new == added->n || (old < names->n_map && names->map[old].guid < added->list[new].guid)) {
            all[n++] = names->map[old++];
            continue;
        }
        if (old < names->n_map && names->map[old].guid == added->list[new].guid)
            free(names->map[old++].name);
        all[n++] = added->list[new ++];
    }
    free(names->map);
    names->map = all;
    names->n_map = n;
    added->n = 0;
    return 0;
}

static int map_read(struct reader *r, const char *text, size_t len, struct entries *entries)
{
    size_t at = 0;
    int rc = 0;

    while (rc == 0 && at < len) {
        const char *newline = memchr(text + at, '\n', len - at);
        r->at = r->line_start = text + at;
        r->end = newline == NULL ? text + len : newline;
        r->line++;
        rc = map_told(r, map_read_line(r, entries));
        at = (size_t)(r->end - text) + 1;
    }
    return rc == 0 ? sort_entries(entries, r) : rc;
}

static void map_free(struct entries *entries)
{
    for (uint32_t i = 0; i < entries->n; i++)
        free(entries->list[i].name);
    free(entries->list);
}

int fab_names_map(struct fab_names *names, const char *file, const char *text, size_t len,
                  struct fab_err *err)
{
    struct reader r = {.file = file == NULL ? "node-name-map" : file, .err = err};
    struct entries entries = {0};
    int rc = map_read(&r, text, len, &entries);

    if (rc == 0 && (take_entries(names, &entries) ?: names_first_words(names)) != 0)
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: out of memory", r.file);
    map_free(&entries);
    return rc;
}

void fab_names_map_check(const char *file, const char *text, size_t len,
                         void (*tell)(const char *mistake, void *cbdata), void *cbdata)
{
    struct fab_err err = {""};
    struct reader r = {.file = file, .err = &err, .tell = tell, .cbdata = cbdata};
    struct entries entries = {0};

    if (map_read(&r, text, len, &entries) != 0)
        tell(err.text, cbdata);
    map_free(&entries);
}

const struct fab_map_entry *fab_names_mapped(const struct fab_names *names, uint64_t guid)
{
    uint32_t at = FAB_LOWER_BOUND(0, names->n_map, i, names->map[i].guid < guid);
    return at < names->n_map && names->map[at].guid == guid ? &names->map[at] : NULL;
}
