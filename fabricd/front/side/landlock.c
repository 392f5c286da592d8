#include "fabricd/front/side/landlock.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/landlock.h of the build machine may be older than the kernel: these are its numbers, and stay so. */
#define READ_FILE       (UINT64_C(1) << 2)
#define READ_DIR        (UINT64_C(1) << 3)
#define READ            (READ_FILE | READ_DIR)
#define ALL_OF(version) ((UINT64_C(1) << (version)) - 1)
#define CONNECT_TCP     (UINT64_C(1) << 1)
#define SCOPE_SIGNAL    (UINT64_C(1) << 1)
#define BENEATH         1
#define ASK_VERSION     1u

struct landlock_handled {
    uint64_t files, net, scoped;
};

struct landlock_beneath {
    uint64_t allowed;
    int32_t folder;
} __attribute__((packed));

/* Of files, what each version of the interface knows; of version 1 the first 13 bits. */
static uint64_t known_rights(long version)
{
    static const unsigned bits[] = {13, 14, 15, 15, 16};
    return ALL_OF(bits[version <= 5 ? version - 1 : 4]);
}

static void landlock_allow(int rules, const char *path, int flags, uint64_t rights)
{
    struct landlock_beneath beneath = {rights, open(path, O_PATH | O_CLOEXEC | flags)};
    if (beneath.folder < 0)
        return;
    (void)!syscall(SYS_landlock_add_rule, rules, BENEATH, &beneath, 0);
    close(beneath.folder);
}

static void allow_folder_of(int rules, const char *path)
{
    char copy[PATH_MAX];
    if (strlen(path) >= sizeof(copy) || path[0] != '/')
        return;
    strcpy(copy, path);
    landlock_allow(rules, dirname(copy), 0, READ);
}

/* Where a library is, there are its modules, which are loaded when they are needed. */
static int allow_library(struct dl_phdr_info *library, size_t size, void *rules)
{
    (void)size;
    allow_folder_of(*(int *)rules, library->dlpi_name);
    return 0;
}

/* Folders with a colon between them. */
static void allow_list(int rules, const char *list)
{
    char folder[PATH_MAX];
    for (const char *at = list; at != NULL && *at != '\0'; at += strspn(at, ":")) {
        const size_t size = strcspn(at, ":");
        if (size < sizeof(folder)) {
            memcpy(folder, at, size);
            folder[size] = '\0';
            landlock_allow(rules, folder, 0, READ);
        }
        at += size;
    }
}

bool landlock_enter(const char *rundir, const char *own)
{
    static const char *const readable[] = {"/usr", "/lib", "/lib64", "/etc",        "/proc",
                                           "/sys", "/dev", "/run",   "/var/lib/sss"};
    const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);
    if (version < 1)
        return false;
    const struct landlock_handled handled = {.files = known_rights(version),
                                             .net = version >= 4 ? CONNECT_TCP : 0,
                                             .scoped = version >= 6 ? SCOPE_SIGNAL : 0};
    const size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, size, 0);
    if (rules < 0)
        return false;
    for (size_t i = 0; i < sizeof(readable) / sizeof(readable[0]); i++)
        landlock_allow(rules, readable[i], 0, READ);
    dl_iterate_phdr(allow_library, &rules);
    allow_list(rules, getenv("PMIX_MCA_mca_base_component_path"));
    allow_folder_of(rules, rundir); /* it may be removed and made anew */
    landlock_allow(rules, own, O_NOFOLLOW | O_DIRECTORY,
                   handled.files & ~UINT64_C(1)); /* all but to execute */
    const bool done = syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    close(rules);
    return done;
}
