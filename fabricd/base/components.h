/*
 * components.h - fabricd's components in the folders of the PMIx library, and whether that library loads
 * them: it skips a component of another version without a message. Only files are read.
 */
#ifndef FABRICD_BASE_COMPONENTS_H
#define FABRICD_BASE_COMPONENTS_H

#include <stdbool.h>
#include <stddef.h>

#define COMPONENT_VERSION 64

/* The text in a component's file. */
struct component_note {
    char version[COMPONENT_VERSION];   /* of the library that it was built for: "7.0.0rc1" */
    char framework[COMPONENT_VERSION]; /* and of the framework: "pnet 3.0.0" */
};

/* Read a component's note. False: the file has none, or cannot be read. */
bool component_note_read(const char *path, struct component_note *out);

/* Read the version of a libpmix.so.2. False: the file has none, or cannot be read. */
bool component_library_read(const char *path, char version[COMPONENT_VERSION]);

enum component_fit {
    COMPONENT_FITS,
    COMPONENT_SPARE, /* for another library, and one of the same framework fits this one */
    COMPONENT_UNFIT
};

/* Called for each component: `text` says what it was built for, and if it does not fit, what to do. */
typedef void component_fn(enum component_fit fit, const char *path, const char *text, void *cbdata);

/*
 * Look at each of our components in the folders "DIR:DIR", of which a folder may be named twice. `library` is
 * the version of the library; NULL: there is none here. Return the number of components.
 */
unsigned components_look_at(const char *folders, const char *library, component_fn *fn, void *cbdata);

/* The same for this host: the library's own folder, then those of PMIX_MCA_mca_base_component_path. */
unsigned components_look(component_fn *fn, void *cbdata);

/* The first component that the library does not load. */
struct component_unfit {
    char path[256], text[512]; /* "": each fits */
};

/* Log a warning for each component that does not fit. */
void components_warn(struct component_unfit *first);

#endif
