/* hostlist.c - lists of hosts in Slurm's form. */
#include "topo/base/hostlist.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"

/* ---- reading ---- */

#define NAME_MAX_BYTES 255 /* of a host name with its domain */
#define BRACKETS_MAX   8   /* pairs of brackets in one name */

/* A name that is being expanded: the bytes so far, and the position of its next part in the list. */
struct spelling {
    const char *text; /* the whole list */
    uint32_t most;    /* maximum number of names */
    struct fab_hostlist *out;
    struct fab_err *err;
    char name[NAME_MAX_BYTES + 1];
};

static int hostlist_bad(const struct spelling *s, const char *at, const char *what)
{
    return fab_fail(s->err, PMIXFAB_ERR_SYNTAX, "not a list of hosts: character %zu: %s",
                    (size_t)(at - s->text) + 1, what);
}

static bool ends_name(char c)
{
    return c == '\0' || c == ',' || isspace((unsigned char)c);
}

static int keep_name(const struct spelling *s, size_t len)
{
    struct fab_hostlist *out = s->out;
    char *name;

    if (out->n >= s->most)
        return fab_fail(s->err, PMIXFAB_ERR_RANGE, "not a list of hosts: more than %u names", s->most);
    name = FAB_ARRAY_ROOM(&out->names, &out->room, out->n + UINT64_C(1)) ? strndup(s->name, len) : NULL;
    if (name == NULL)
        return fab_fail(s->err, PMIXFAB_ERR_NOMEM, "out of memory: a list of hosts");
    out->names[out->n++] = name;
    return 0;
}

static int read_number(const struct spelling *s, const char **at, uint64_t *number, int *width)
{
    const char *from = *at;

    for (*number = 0; isdigit((unsigned char)**at); ++*at)
        *number = 10 * *number + (uint64_t)(**at - '0');
    *width = (int)(*at - from);
    if (*width == 0)
        return hostlist_bad(s, from, **at == '\0' ? "a bracket is not closed" : "a number is expected here");
    return *width <= 18 ? 0 : hostlist_bad(s, from, "the number is too long");
}

static int spell(struct spelling *s, const char *at, size_t len, unsigned depth);

/* Expand the ranges in brackets from `at` on; `close` is the position after the closing bracket. */
static int spell_ranges(struct spelling *s, const char *at, const char *close, size_t len, unsigned depth)
{
    while (at < close) {
        uint64_t from, to;
        const char *first = at;
        int width, ignored, rc = read_number(s, &at, &from, &width);

        to = from;
        if (rc == 0 && *at == '-') {
            at++;
            rc = read_number(s, &at, &to, &ignored);
        }
        if (rc != 0)
            return rc;
        if (to < from)
            return hostlist_bad(s, first, "the range ends before it begins");
        if (*at != ',' && *at != ']')
            return hostlist_bad(s, at, "only numbers, '-' and ',' may stand in brackets");
        at++;
        for (uint64_t n = from; n <= to && rc == 0; n++) {
            int bytes =
                snprintf(s->name + len, sizeof(s->name) - len, "%0*llu", width, (unsigned long long)n);

            if ((size_t)bytes >= sizeof(s->name) - len)
                return hostlist_bad(s, first, "the name is too long");
            rc = spell(s, close, len + (size_t)bytes, depth + 1);
        }
        if (rc != 0)
            return rc;
    }
    return at == close ? 0 : hostlist_bad(s, at, "a bracket is not closed");
}

/* Expand all names whose first `len` bytes are known and whose rest begins at `at`. */
static int spell(struct spelling *s, const char *at, size_t len, unsigned depth)
{
    for (; !ends_name(*at); at++) {
        if (*at == ']')
            return hostlist_bad(s, at, "a closing bracket without an opening one");
        if (*at == '[') {
            const char *close = strchr(at, ']');

            if (close == NULL)
                return hostlist_bad(s, at, "a bracket is not closed");
            if (depth == BRACKETS_MAX)
                return hostlist_bad(s, at, "too many brackets in one name");
            return at + 1 == close ? hostlist_bad(s, at, "the brackets are empty")
                                   : spell_ranges(s, at + 1, close + 1, len, depth);
        }
        if (len == NAME_MAX_BYTES)
            return hostlist_bad(s, at, "the name is too long");
        s->name[len++] = *at;
    }
    return keep_name(s, len);
}

/* Return the position after a name, with its brackets and the commas in them. */
static const char *behind_name(const char *at)
{
    for (bool inside = false; *at != '\0' && (inside || !ends_name(*at)); at++)
        inside = *at == '[' || (inside && *at != ']');
    return at;
}

int fab_hostlist_parse_most(const char *text, uint32_t most, struct fab_hostlist *out, struct fab_err *err)
{
    struct spelling s = {.text = text, .most = most, .out = out, .err = err};
    int rc = 0;

    *out = (struct fab_hostlist){0};
    for (const char *at = text; rc == 0 && *at != '\0';) {
        if (ends_name(*at)) {
            at++;
            continue;
        }
        rc = spell(&s, at, 0, 0);
        at = behind_name(at);
    }
    if (rc != 0)
        fab_hostlist_free(out);
    return rc;
}

int fab_hostlist_parse(const char *text, struct fab_hostlist *out, struct fab_err *err)
{
    return fab_hostlist_parse_most(text, FAB_HOSTLIST_MAX, out, err);
}

void fab_hostlist_free(struct fab_hostlist *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        free(list->names[i]);
    free(list->names);
    *list = (struct fab_hostlist){0};
}

/* ---- folding ---- */

/* A name split before its last digits. */
struct numbered {
    const char *digits;
    size_t prefix; /* bytes before the digits */
    size_t width;  /* 0: the name does not end in a countable number */
    uint64_t number;
};

static struct numbered numbered_split(const char *name)
{
    struct numbered c = {.prefix = strlen(name)};

    /* longer numbers are serial numbers and stay part of the name */
    while (c.prefix > 0 && isdigit((unsigned char)name[c.prefix - 1]) && c.width < 9) {
        c.prefix--;
        c.width++;
    }
    if (c.prefix > 0 && isdigit((unsigned char)name[c.prefix - 1])) {
        c.prefix += c.width;
        c.width = 0;
    }
    c.digits = name + c.prefix;
    c.number = c.width > 0 ? strtoull(c.digits, NULL, 10) : 0;
    return c;
}

/* Return how many of names[0..n-1] form one consecutive run. */
static size_t run_length(const char *const *names, size_t n)
{
    struct numbered first = numbered_split(names[0]);
    size_t len = 1;

    while (first.width > 0 && len < n) {
        struct numbered next = numbered_split(names[len]);
        bool padded = first.width > 1 && first.digits[0] == '0';
        bool next_padded = next.width > 1 && next.digits[0] == '0';

        if (next.width == 0 || next.prefix != first.prefix ||
            memcmp(names[0], names[len], first.prefix) != 0 || next.number != first.number + len ||
            ((padded || next_padded) && next.width != first.width))
            break;
        len++;
    }
    return len;
}

/* Write all adjacent runs of one prefix and return how many names they cover. */
static size_t fold_prefix(FILE *out, const char *const *names, size_t n)
{
    struct numbered first = numbered_split(names[0]);
    size_t done = run_length(names, n), end = done;

    while (first.width > 0 && end < n) {
        struct numbered next = numbered_split(names[end]);

        if (next.width == 0 || next.prefix != first.prefix || memcmp(names[0], names[end], first.prefix) != 0)
            break;
        end += run_length(names + end, n - end);
    }
    if (end == 1) {
        fputs(names[0], out);
        return 1;
    }
    fwrite(names[0], 1, first.prefix, out);
    for (size_t i = 0; i < end; i += done) {
        done = run_length(names + i, end - i);
        fprintf(out, "%c%s", i == 0 ? '[' : ',', numbered_split(names[i]).digits);
        if (done > 1)
            fprintf(out, "-%s", numbered_split(names[i + done - 1]).digits);
    }
    putc(']', out);
    return end;
}

char *fab_hostlist_fold(const char *const *names, size_t n)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    bool failed;

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < n;) {
        if (i > 0)
            putc(',', out);
        i += fold_prefix(out, names + i, n - i);
    }
    failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}
