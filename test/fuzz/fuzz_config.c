/*
 * Any text as a configuration: taken, or refused with lines that have a place each and that a terminal can
 * show. What is taken can be told.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/config/config.h"
#include "topo/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

static void check_clean(const char *line, void *cbdata)
{
    char clean[1024];
    (void)cbdata;
    fab_text_clean(clean, sizeof(clean), line, strlen(line), NULL);
    must(strcmp(clean, line) == 0 && strchr(line, '\n') == NULL);
}

static void check_value(const struct config_value *value, void *cbdata)
{
    (void)cbdata;
    must(value->section[0] != '\0' && value->name[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config config;
    struct config_mistakes mistakes = {0};
    char path[] = "/tmp/fabricd-fuzz.XXXXXX";
    int fd = mkstemp(path);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
    config_init(&config);
    config_read(&config, path, &mistakes);
    unlink(path);
    for (uint32_t i = 0; i < mistakes.n; i++) {
        must(mistakes.items[i].at.line > 0 || size > 1u << 20);
        must(i == 0 || mistakes.items[i].at.line >= mistakes.items[i - 1].at.line);
    }
    config_mistakes_tell(&mistakes, check_clean, NULL);
    must(config_tell(&config, check_value, NULL) == 0);
    config_mistakes_destroy(&mistakes);
    config_destroy(&config);
    return 0;
}
