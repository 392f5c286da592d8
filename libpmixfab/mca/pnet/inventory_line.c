#include "mca/pnet/inventory_line.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- the request -------------------------------------------------------------------------------- */

static char *put_base64(char *to, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        size_t n = size - i < 3 ? size - i : 3;
        uint32_t three = (uint32_t)bytes[i] << 16;
        three |= n > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        three |= n > 2 ? (uint32_t)bytes[i + 2] : 0;
        *to++ = digits[three >> 18];
        *to++ = digits[three >> 12 & 63];
        *to++ = n > 1 ? digits[three >> 6 & 63] : '=';
        *to++ = n > 2 ? digits[three & 63] : '=';
    }
    return to;
}

int pnet_inventory_line(const void *bytes, size_t size, char **line, size_t *len)
{
    static const char head[] = "{\"op\":\"deliver\",\"bytes\":\"", tail[] = "\"}\n";
    *line = NULL;
    *len = 0;
    if (bytes == NULL || size == 0 || size > SIZE_MAX / 2)
        return PMIXFAB_ERR_INVAL;
    char *start = malloc(sizeof(head) + (size + 2) / 3 * 4 + sizeof(tail));
    if (start == NULL)
        return PMIXFAB_ERR_NOMEM;
    memcpy(start, head, sizeof(head) - 1);
    char *at = put_base64(start + sizeof(head) - 1, bytes, size);
    memcpy(at, tail, sizeof(tail)); /* its end as well, for who prints it */
    *line = start;
    *len = (size_t)(at - start) + sizeof(tail) - 1;
    return PMIXFAB_OK;
}

/* ---- the answer --------------------------------------------------------------------------------- */

#define MAX_DEPTH 16

/* What is left of a line. A function that finds something else than it should says false. */
struct text {
    const char *at, *end;
};

static void skip_space(struct text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\t' || *t->at == '\r'))
        t->at++;
}

static bool take_char(struct text *t, char c)
{
    skip_space(t);
    if (t->at == t->end || *t->at != c)
        return false;
    t->at++;
    return true;
}

static bool take_word(struct text *t, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(t->end - t->at) < len || memcmp(t->at, word, len) != 0)
        return false;
    t->at += len;
    return true;
}

/* \uXXXX: what is not ASCII is for the reader '?', once for each. */
static bool take_unicode(struct text *t, char *c)
{
    unsigned value = 0;
    if (t->end - t->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char d = *t->at++;
        if (d >= '0' && d <= '9')
            value = value * 16 + (unsigned)(d - '0');
        else if ((d | 32) >= 'a' && (d | 32) <= 'f')
            value = value * 16 + (unsigned)((d | 32) - 'a' + 10);
        else
            return false;
    }
    *c = value >= 0x20 && value < 0x7f ? (char)value : '?';
    return true;
}

static bool take_escaped(struct text *t, char *c)
{
    static const char escapes[] = "\"\\/bfnrtu", means[] = "\"\\/?????";
    const char *found = t->at < t->end && *t->at != '\0' ? strchr(escapes, *t->at) : NULL;
    if (found == NULL)
        return false;
    t->at++;
    if (*found == 'u')
        return take_unicode(t, c);
    *c = means[found - escapes];
    return true;
}

/* A string; its beginning goes to `to` as text that can be printed. size 0: to nowhere. */
static bool answer_parse_string(struct text *t, char *to, size_t size)
{
    size_t n = 0;
    if (!take_char(t, '"'))
        return false;
    while (t->at < t->end && *t->at != '"') {
        char c = *t->at++;
        if ((unsigned char)c < ' ')
            return false;
        if (c == '\\' && !take_escaped(t, &c))
            return false;
        if (n + 1 < size)
            to[n++] = c == 0x7f ? '?' : c;
    }
    if (size > 0)
        to[n] = '\0';
    return take_char(t, '"');
}

static bool take_digits(struct text *t)
{
    const char *start = t->at;
    while (t->at < t->end && *t->at >= '0' && *t->at <= '9')
        t->at++;
    return t->at > start;
}

/* *whole: its value where it is an integer; beyond an int it is the nearest. */
static bool take_number(struct text *t, int *whole)
{
    int64_t value = 0;
    bool negative = take_word(t, "-");
    const char *start = t->at;
    if (!take_digits(t) || (*start == '0' && t->at > start + 1))
        return false;
    for (const char *at = start; at < t->at; at++)
        value = value > INT_MAX ? value : value * 10 + (*at - '0');
    *whole = value > INT_MAX ? (negative ? INT_MIN : INT_MAX) : (int)(negative ? -value : value);
    if (take_word(t, ".") && !take_digits(t))
        return false;
    if (take_word(t, "e") || take_word(t, "E")) {
        if (!take_word(t, "+"))
            (void)take_word(t, "-");
        return take_digits(t);
    }
    return true;
}

/* Any value. By hand and not by calling itself: what nests too deep is refused. */
static bool skip_value(struct text *t)
{
    char open[MAX_DEPTH]; /* the bracket that ends each */
    unsigned depth = 0;
    for (;;) {
        int number;
        skip_space(t);
        char c = t->at < t->end ? *t->at : '\0';
        if (c == '{' || c == '[') {
            if (depth == MAX_DEPTH)
                return false;
            t->at++;
            open[depth++] = c == '{' ? '}' : ']';
            if (!take_char(t, open[depth - 1])) {
                if (c == '{' && (!answer_parse_string(t, NULL, 0) || !take_char(t, ':')))
                    return false;
                continue;
            }
            depth--;
        } else if (c == '"') {
            if (!answer_parse_string(t, NULL, 0))
                return false;
        } else if (!take_word(t, "true") && !take_word(t, "false") && !take_word(t, "null") &&
                   !take_number(t, &number)) {
            return false;
        }
        while (depth > 0 && take_char(t, open[depth - 1]))
            depth--;
        if (depth == 0)
            return true;
        if (!take_char(t, ',') ||
            (open[depth - 1] == '}' && (!answer_parse_string(t, NULL, 0) || !take_char(t, ':'))))
            return false;
    }
}

static bool take_member(struct text *t, struct pnet_answer *out)
{
    char key[16];
    if (!answer_parse_string(t, key, sizeof(key)) || !take_char(t, ':'))
        return false;
    skip_space(t);
    if (strcmp(key, "ok") == 0) {
        out->last = true;
        out->ok = take_word(t, "true");
        return out->ok || take_word(t, "false");
    }
    if (strcmp(key, "error") == 0)
        return take_number(t, &out->code);
    if (strcmp(key, "message") == 0)
        return answer_parse_string(t, out->message, sizeof(out->message));
    return skip_value(t);
}

int pnet_inventory_answer(const char *line, size_t len, struct pnet_answer *out)
{
    struct text t = {line, line + len};
    *out = (struct pnet_answer){.code = PMIXFAB_ERR_IO};
    bool good = take_char(&t, '{');
    if (good && !take_char(&t, '}')) {
        do
            good = take_member(&t, out);
        while (good && take_char(&t, ','));
        good = good && take_char(&t, '}');
    }
    skip_space(&t);
    if (good && t.at == t.end)
        return PMIXFAB_OK;
    *out = (struct pnet_answer){.code = PMIXFAB_ERR_SYNTAX};
    return PMIXFAB_ERR_SYNTAX;
}
