/* probe_files.h - what the tests of recorded fabrics share. */
#ifndef TEST_PROBE_FILES_H
#define TEST_PROBE_FILES_H

#include <unistd.h>

#include "probes/capture/file.h"
#include "test/unit/test.h"

struct blob {
    char *data;
    size_t len;
};

/* A file, with a 0 behind it. Free data. */
static inline struct blob load(const char *path)
{
    struct blob b = {0};
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    b.len = (size_t)ftell(f);
    rewind(f);
    b.data = malloc(b.len + 1);
    assert_non_null(b.data);
    assert_int_equal(fread(b.data, 1, b.len, f), b.len);
    b.data[b.len] = '\0';
    fclose(f);
    return b;
}

/* Read a capture that must be good. */
static inline void parse(const char *text, size_t len, struct fab_inventory *inv)
{
    struct fab_err err = {{0}};
    fab_inventory_init(inv);
    must(capture_parse("c.txt", text, len, inv, &err), &err);
}

#endif
