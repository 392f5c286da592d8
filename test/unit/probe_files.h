/* probe_files.h - what the tests of recorded fabrics share. */
#ifndef TEST_PROBE_FILES_H
#define TEST_PROBE_FILES_H

#include <unistd.h>

#include "probes/capture/capture_file.h"
#include "test/unit/test.h"

struct blob {
    char *data;
    size_t len;
};

/* A file, with a 0 behind it. Free data. */
static inline struct blob load(const char *path)
{
    struct blob b;
    b.data = read_file(path, &b.len);
    return b;
}

/* Read a capture that must be good. */
static inline void parse(const char *text, size_t len, struct fab_inventory *inv)
{
    fab_inventory_init(inv);
    must_do(capture_parse("c.txt", text, len, NULL, inv, fresh_err()));
}

#endif
