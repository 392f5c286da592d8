/* settings.c - the configuration of a simulated daemon, which a test makes setting by setting. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/played.h"

void settings_set(struct settings *settings, const char *section, const char *key, const char *value)
{
    unsigned i = 0;
    while (i < settings->n &&
           (strcmp(settings->items[i].section, section) != 0 || strcmp(settings->items[i].key, key) != 0))
        i++;
    if (i == MOST_SETTINGS)
        sim_fail("too many settings");
    struct setting *one = &settings->items[i];
    if (i == settings->n)
        settings->n++;
    snprintf(one->section, sizeof(one->section), "%s", section);
    snprintf(one->key, sizeof(one->key), "%s", key);
    free(one->value);
    one->value = value == NULL ? NULL : strdup(value);
}

static void write_value(FILE *file, const char *key, const char *value)
{
    for (const char *line = value; line != NULL && *line != '\0';) {
        const size_t len = strcspn(line, "\n");
        fprintf(file, "%s = %.*s\n", key, (int)len, line);
        line += len + (line[len] == '\n');
    }
}

void settings_write(const struct settings *settings, const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        sim_fail("%s: %s", path, strerror(errno));
    for (unsigned i = 0; i < settings->n; i++) {
        bool first = true;
        for (unsigned k = 0; k < i; k++)
            first = first && strcmp(settings->items[k].section, settings->items[i].section) != 0;
        if (!first)
            continue;
        fprintf(file, "[%s]\n", settings->items[i].section);
        for (unsigned k = i; k < settings->n; k++)
            if (strcmp(settings->items[k].section, settings->items[i].section) == 0)
                write_value(file, settings->items[k].key, settings->items[k].value);
    }
    fclose(file);
}

void settings_free(struct settings *settings)
{
    for (unsigned i = 0; i < settings->n; i++)
        free(settings->items[i].value);
    settings->n = 0;
}
