/*
 * names_words.c - mapped names of several words: "node7 mlx5_0", "node7 MT4119 ConnectX5", "login 1".
 *
 * What the pattern fits is a host and a device. Of other names the host is the first word, as other readers
 * of these maps take it. It is all of the name where the first word is not a host's by itself: it has no
 * digit, and a number comes behind it ("login 1"), or another name of the map begins so and goes on
 * otherwise.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/model/names_priv.h"

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

/* May the first word be a host's name? */
static bool begins_with_host(const char *name)
{
    const size_t len = first_word(name);
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && (i == 0 || strchr("._-", name[i]) == NULL))
            return false;
    return true;
}

/* "1", "rack 7": is one of the words a number? */
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

int names_first_words(struct fab_names *names)
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
        if (strcspn(entry->name, "0123456789") > first_word(entry->name)) /* "node7" is a host's by itself */
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
