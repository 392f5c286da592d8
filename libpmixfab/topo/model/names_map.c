/* names_map.c - reading a node-name-map: a GUID, white space, a name in double quotes; # comments. */
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

#define NAME_LENGTH 255

/* Where the reader stands. */
struct reader {
    const char *file;
    const char *at, *line_start, *end; /* end: of the line */
    uint32_t line;
    struct fab_err *err;
    void (*tell)(const char *mistake, void *cbdata); /* NULL: the first mistake ends it */
    void *cbdata;
};

/* Entries as they are read. */
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
        return map_reject(r, PMIXFAB_ERR_RANGE, "GUID 0 is no node's");
    }
    return 0;
}

/* A name in quotes, then nothing but a comment. */
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
        return map_reject(r, PMIXFAB_ERR_SYNTAX, "a byte 0 in a name");
    if (*len > NAME_LENGTH)
        return map_reject(r, PMIXFAB_ERR_RANGE, "a name of %zu bytes, at most %d can be", *len, NAME_LENGTH);
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

/* Where mistakes are told, reading goes on. */
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

/* Sorted; a GUID with two names is refused, one that says the same twice is not. */
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

/* A file read later adds to those before it, and its names hold. Takes what is in `added`, or nothing. */
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
