#include "fabricd/base/components.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"

#define FILE_LIMIT (256u << 20)

/* In "FABRICD_BUILT_FOR=7.0.0rc1 pnet 3.0.0": libpmixfab/mca/library/shapes.h writes it. */
#define NOTE "FABRICD_BUILT_FOR="
/* In "OpenPMIx 7.0.0rc1 (PMIx Standard: ...", which PMIx_Get_version() returns. */
#define LIBRARY "OpenPMIx "

/* Copy printable text up to one of `ends`. False: there is none, or it is too long. */
static bool note_word(const char **at, const char *end, const char *ends, char *out)
{
    size_t n = 0;
    while (*at + n < end && (*at)[n] > ' ' - 1 && (*at)[n] < 127 && strchr(ends, (*at)[n]) == NULL)
        n++;
    if (n == 0 || n >= COMPONENT_VERSION || *at + n == end)
        return false;
    memcpy(out, *at, n);
    out[n] = '\0';
    *at += n;
    return true;
}

/* Find `mark` with a digit behind it, and return the place of the digit; NULL: not there. */
static const char *note_find(const char *bytes, size_t size, const char *mark)
{
    const size_t n = strlen(mark);
    const char *end = bytes + size;
    for (const char *at = bytes; (at = memmem(at, (size_t)(end - at), mark, n)) != NULL;) {
        at += n;
        if (at < end && *at >= '0' && *at <= '9')
            return at;
    }
    return NULL;
}

/* Read a file, which may be reached by a link. */
static bool note_file(const char *path, char **bytes, size_t *size)
{
    void *read = NULL;
    char *real = realpath(path, NULL);
    const bool good = real != NULL && file_read(real, FILE_LIMIT, &read, size) == 0;
    *bytes = read;
    free(real);
    return good;
}

bool component_note_read(const char *path, struct component_note *out)
{
    char *bytes = NULL;
    size_t size = 0;
    *out = (struct component_note){"", ""};
    if (!note_file(path, &bytes, &size))
        return false;
    const char *at = note_find(bytes, size, NOTE), *end = bytes + size;
    bool good = at != NULL && note_word(&at, end, " ", out->version);
    if (good) {
        at++;
        good = note_word(&at, end, "", out->framework);
    }
    if (!good)
        *out = (struct component_note){"", ""};
    free(bytes);
    return good;
}

bool component_library_read(const char *path, char version[COMPONENT_VERSION])
{
    char *bytes = NULL;
    size_t size = 0;
    version[0] = '\0';
    if (!note_file(path, &bytes, &size))
        return false;
    const char *at = note_find(bytes, size, LIBRARY);
    const bool good = at != NULL && note_word(&at, bytes + size, " ,(", version);
    free(bytes);
    return good;
}

/* ---- folders ---------------------------------------------------------------------------------------- */

#define MAX_COMPONENTS 64

struct component {
    char path[PATH_MAX];
    struct component_note note; /* "": none */
    dev_t device;
    ino_t file;
};

/* Return whether a component of this framework fits the library. */
static bool component_served(const struct component *all, unsigned n, const char *framework,
                             const char *library)
{
    const size_t length = strcspn(framework, " ");
    for (unsigned i = 0; i < n; i++)
        if (strncmp(all[i].note.framework, framework, length) == 0 && all[i].note.framework[length] == ' ' &&
            strcmp(all[i].note.version, library) == 0)
            return true;
    return false;
}

static void component_tell(const struct component *all, unsigned n, const struct component *one,
                           const char *library, component_fn *fn, void *cbdata)
{
    const struct component_note *note = &one->note;
    enum component_fit fit = COMPONENT_UNFIT;
    char text[512];
    if (note->version[0] == '\0') {
        snprintf(text, sizeof(text),
                 "it does not say which PMIx it was built for, so an earlier fabricd installed it: install "
                 "the component of this one");
    } else if (library == NULL) {
        snprintf(text, sizeof(text), "built for PMIx %s (%s), but no libpmix.so.2 was found here",
                 note->version, note->framework);
    } else if (strcmp(library, note->version) == 0) {
        fit = COMPONENT_FITS;
        snprintf(text, sizeof(text), "built for PMIx %s (%s), which is installed here", note->version,
                 note->framework);
    } else if (component_served(all, n, note->framework, library)) {
        fit = COMPONENT_SPARE;
        snprintf(text, sizeof(text),
                 "built for PMIx %s (%s); PMIx %s, which is installed here, loads another", note->version,
                 note->framework, library);
    } else {
        snprintf(text, sizeof(text),
                 "built for PMIx %s (%s), but PMIx %s is installed here, which skips it without a message: "
                 "install the component that was built for PMIx %s, or remove this one",
                 note->version, note->framework, library, library);
    }
    fn(fit, one->path, text, cbdata);
}

/* Add the components of a folder, each once. */
static unsigned component_add(struct component *all, unsigned n, const char *folder, size_t length)
{
    char pattern[PATH_MAX];
    glob_t found = {.gl_pathc = 0};
    const int written =
        snprintf(pattern, sizeof(pattern), "%.*s/pmix_mca_p[nm][ed][tl]_fabricd*.so", (int)length, folder);
    if (length == 0 || written < 0 || (size_t)written >= sizeof(pattern) ||
        glob(pattern, 0, NULL, &found) != 0)
        return n;
    for (size_t i = 0; i < found.gl_pathc && n < MAX_COMPONENTS; i++) {
        struct component *one = &all[n];
        struct stat status;
        bool seen = stat(found.gl_pathv[i], &status) != 0 || strlen(found.gl_pathv[i]) >= sizeof(one->path);
        for (unsigned k = 0; k < n && !seen; k++)
            seen = all[k].device == status.st_dev && all[k].file == status.st_ino;
        if (seen)
            continue;
        strcpy(one->path, found.gl_pathv[i]);
        one->device = status.st_dev;
        one->file = status.st_ino;
        (void)component_note_read(one->path, &one->note);
        n++;
    }
    globfree(&found);
    return n;
}

unsigned components_look_at(const char *folders, const char *library, component_fn *fn, void *cbdata)
{
    struct component *all = calloc(MAX_COMPONENTS, sizeof(*all));
    unsigned n = 0;
    while (all != NULL && folders != NULL && *folders != '\0') {
        const size_t length = strcspn(folders, ":");
        n = component_add(all, n, folders, length);
        folders += length;
        folders += *folders == ':';
    }
    for (unsigned i = 0; i < n; i++)
        component_tell(all, n, &all[i], library, fn, cbdata);
    free(all);
    return n;
}

unsigned components_look(component_fn *fn, void *cbdata)
{
    static const char *const libraries[] = {PMIX_LIBRARIES "/libpmix.so.2", "/usr/lib64/libpmix.so.2",
                                            "/usr/lib/libpmix.so.2", "/usr/local/lib/libpmix.so.2"};
    char version[COMPONENT_VERSION], folders[2 * PATH_MAX];
    const char *more = getenv("PMIX_MCA_mca_base_component_path");
    bool there = false;
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]) && !there; i++)
        there = component_library_read(libraries[i], version);
    const int written =
        snprintf(folders, sizeof(folders), "%s:%s", PMIX_COMPONENTS, more == NULL ? "" : more);
    return written > 0 && (size_t)written < sizeof(folders)
               ? components_look_at(folders, there ? version : NULL, fn, cbdata)
               : 0;
}

static void component_warn(enum component_fit fit, const char *path, const char *text, void *cbdata)
{
    struct component_unfit *first = cbdata;
    if (fit != COMPONENT_UNFIT)
        return;
    log_warning("component %s: %s", path, text);
    if (first->text[0] == '\0') {
        snprintf(first->path, sizeof(first->path), "%s", path);
        snprintf(first->text, sizeof(first->text), "%s", text);
    }
}

void components_warn(struct component_unfit *first)
{
    *first = (struct component_unfit){"", ""};
    (void)components_look(component_warn, first);
}
