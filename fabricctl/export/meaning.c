/*
 * meaning.c - two texts that say the same.
 */
#include "fabricctl/export/meaning.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"
#include "topo/base/hostlist.h"

/* Lines in the making. */
struct meant {
    char **lines;
    uint32_t n, room;
    bool failed;
};

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "Nodes=n[1-3]" with its names one by one in order; what is no list stands as it is. */
static void put_spelled(FILE *out, const char *word)
{
    const char *equals = strchr(word, '=');
    struct fab_hostlist list;

    if (equals == NULL || fab_hostlist_parse(equals + 1, &list, NULL) != 0) {
        fputs(word, out);
        return;
    }
    qsort(list.names, list.n, sizeof *list.names, compare_texts);
    fwrite(word, 1, (size_t)(equals - word) + 1, out);
    for (uint32_t i = 0; i < list.n; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", list.names[i]);
    fab_hostlist_free(&list);
}

/* One line, which is written on, in the one form. What is no configuration of Slurm's keeps its indentation:
 * in YAML that says what belongs to what. */
static void meaning_line(struct meant *m, char *line, bool slurm)
{
    const int indentation = slurm ? 0 : (int)strspn(line, " \t");
    char *text = NULL, *rest = NULL;
    size_t size = 0;
    FILE *out;

    line[strcspn(line, "#")] = '\0';
    if (line[strspn(line, " \t\r")] == '\0')
        return;
    out = open_memstream(&text, &size);
    if (out != NULL)
        fprintf(out, "%.*s", indentation, line);
    for (char *word = strtok_r(line, " \t\r", &rest); out != NULL && word != NULL;
         word = strtok_r(NULL, " \t\r", &rest)) {
        if (slurm)
            put_spelled(out, word);
        else
            fputs(word, out);
        putc(' ', out);
    }
    if (out == NULL || fclose(out) != 0 || !FAB_ARRAY_ROOM(&m->lines, &m->room, m->n + UINT64_C(1))) {
        m->failed = true;
        free(text);
        return;
    }
    m->lines[m->n++] = text;
}

static char *meaning_of_lines(const char *text, bool slurm, bool sorted)
{
    struct meant m = {0};
    char *copy = strdup(text), *meaning = NULL, *rest = NULL;
    size_t size;
    FILE *out = open_memstream(&meaning, &size);

    m.failed = copy == NULL || out == NULL;
    for (char *line = m.failed ? NULL : strtok_r(copy, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        meaning_line(&m, line, slurm);
    if (sorted && m.n > 0)
        qsort(m.lines, m.n, sizeof *m.lines, compare_texts);
    for (uint32_t i = 0; i < m.n; i++) {
        if (out != NULL)
            fprintf(out, "%s\n", m.lines[i]);
        free(m.lines[i]);
    }
    m.failed |= out != NULL && fclose(out) != 0;
    if (m.failed) {
        free(meaning);
        meaning = NULL;
    }
    free(m.lines);
    free(copy);
    return meaning;
}

char *ctl_meaning_lines(const char *text)
{
    return meaning_of_lines(text, false, false);
}

char *ctl_meaning_slurm(const char *text)
{
    return meaning_of_lines(text, true, true);
}

char *ctl_meaning_slurm_block(const char *text)
{
    return meaning_of_lines(text, true, false);
}

static char *meaning_of_json(json_t *value)
{
    char *meaning = value != NULL ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;

    json_decref(value);
    return meaning;
}

char *ctl_meaning_json(const char *text)
{
    return meaning_of_json(json_loads(text, JSON_DECODE_ANY, NULL));
}

char *ctl_meaning_planes(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL), *plane;
    size_t i;

    json_array_foreach(json_object_get(value, "planes"), i, plane)
    {
        json_object_del(plane, "generation");
        json_object_del(plane, "published");
    }
    return meaning_of_json(value);
}
