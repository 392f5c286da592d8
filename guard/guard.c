/*
 * guard.c - find out which parts of the guard are active, and whether the library's calls reach the guard.
 *
 * A function of the guard is called if the library looks it up by name, and finds the guard's first. A
 * library of the same version may be linked so that it does not (-Bsymbolic-functions, protected symbols), or
 * may hide the original function. Its relocations show that before it is started.
 */
#include <elf.h>
#include <link.h>
#include <pmix.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "guard/guard_priv.h"

#if __ELF_NATIVE_CLASS == 64
#define REACHED_SYMBOL(info) ELF64_R_SYM(info)
#else
#define REACHED_SYMBOL(info) ELF32_R_SYM(info)
#endif

#define LOG_AGAIN_S 60
#define MOST_LINES  16

static atomic_int server_kind; /* enum guard_server */
static void (*_Atomic log_fn)(const char *line);

/* ---- the original functions ------------------------------------------------------------------------- */

/* The library loads munge's library with a module of its own, outside the global scope of the process. */
void *guard_find_original(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found != NULL || strncmp(name, "munge_", 6) != 0)
        return found;
    void *munge = dlopen("libmunge.so.2", RTLD_LAZY);
    return munge == NULL ? NULL : dlsym(munge, name);
}

void *guard_original(const char *name)
{
    void *found = guard_find_original(name);
    if (found == NULL) {
        fprintf(stderr, "libpmix-guard: there is no original function %s()\n", name);
        abort();
    }
    return found;
}

/* ---- check that each function is reached ------------------------------------------------------------- */

struct guarded {
    const char *name;
    enum guard_part part;
    bool optional; /* in a library that the PMIx library may load later, or not at all */
};

static const struct guarded all_guarded[] = {
    {"pmix_server_fabric_register", GUARD_FABRIC, false},
    {"pmix_server_fabric_update", GUARD_FABRIC, false},
    {"pmix_server_get", GUARD_REQUESTS, false},
#if PMIX_VERSION_MAJOR < 5
    {"PMIx_Query_info_nb", GUARD_REQUESTS, false},
#else
    {"pmix_parse_localquery", GUARD_REQUESTS, false},
    {"pmix_server_refresh_cache", GUARD_REQUESTS, false},
#endif
    {"pmix_bfrops_base_assign_module", GUARD_CONNECTIONS, false},
    {"pmix_ptl_base_connection_handler", GUARD_CONNECTIONS, false},
    {"pmix_ptl_base_process_msg", GUARD_CONNECTIONS, false},
    {"pmix_ptl_base_recv_blocking", GUARD_CONNECTIONS, false},
    {"pmix_ptl_base_recv_handler", GUARD_CONNECTIONS, false},
    {"pmix_ptl_base_send_blocking", GUARD_CONNECTIONS, false},
    {"pmix_ptl_base_send_handler", GUARD_CONNECTIONS, false},
    {"pmix_server_notify_client_of_event", GUARD_CONNECTIONS, false},
    {"accept", GUARD_CONNECTIONS, false},
    {"bind", GUARD_CONNECTIONS, false},
    {"close", GUARD_CONNECTIONS, false},
    {"shutdown", GUARD_CONNECTIONS, false},
    {"munge_encode", GUARD_CONNECTIONS, true},
    {"munge_decode", GUARD_CONNECTIONS, true},
};

static bool guarded_in(const struct guarded *guarded, enum guard_part part)
{
    return part == GUARD_JOBS || guarded->part == part ||
           (part == GUARD_REQUESTS && guarded->part == GUARD_FABRIC);
}

/* The tables in the dynamic section of a loaded library. */
struct library_tables {
    const char *base;
    const char *strings;
    const ElfW(Sym) * symbols;
    struct relocations {
        const char *first;
        size_t bytes, each;
    } data, calls;
    bool symbolic; /* it resolves each name in itself first */
};

static const void *reached_pointer(const struct link_map *map, const ElfW(Dyn) * entry)
{
    const uintptr_t there = entry->d_un.d_ptr; /* most dynamic linkers have added the base already */
    return (const void *)(there < map->l_addr ? there + map->l_addr : there);
}

static void reached_read(const struct link_map *map, struct library_tables *out)
{
    size_t each = sizeof(ElfW(Rela));
    *out = (struct library_tables){.base = (const char *)map->l_addr};
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB)
            out->strings = reached_pointer(map, entry);
        else if (entry->d_tag == DT_SYMTAB)
            out->symbols = reached_pointer(map, entry);
        else if (entry->d_tag == DT_RELA || entry->d_tag == DT_REL)
            out->data.first = reached_pointer(map, entry);
        else if (entry->d_tag == DT_RELASZ || entry->d_tag == DT_RELSZ)
            out->data.bytes = entry->d_un.d_val;
        else if (entry->d_tag == DT_RELAENT || entry->d_tag == DT_RELENT)
            each = entry->d_un.d_val;
        else if (entry->d_tag == DT_JMPREL)
            out->calls.first = reached_pointer(map, entry);
        else if (entry->d_tag == DT_PLTRELSZ)
            out->calls.bytes = entry->d_un.d_val;
        else if (entry->d_tag == DT_SYMBOLIC ||
                 (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_SYMBOLIC) != 0))
            out->symbolic = true;
    }
    out->data.each = out->calls.each = each;
}

/*
 * Count the relocations of this name in the table; -1: a relocation does not resolve to `own`. A call that
 * was not made yet is not resolved.
 */
static int reached_count(const struct library_tables *library, const struct relocations *table,
                         const char *name, const void *own, const void *original)
{
    int n = 0;
    for (size_t at = 0; table->first != NULL && at + table->each <= table->bytes; at += table->each) {
        const ElfW(Rel) *one = (const void *)(table->first + at); /* the longer form begins alike */
        const ElfW(Sym) *symbol = &library->symbols[REACHED_SYMBOL(one->r_info)];
        const void *found;
        if (REACHED_SYMBOL(one->r_info) == 0 || strcmp(library->strings + symbol->st_name, name) != 0)
            continue;
        memcpy(&found, library->base + one->r_offset, sizeof(found));
        const bool later = table == &library->calls && found != original;
        const bool protected = symbol->st_shndx != SHN_UNDEF && ELF64_ST_VISIBILITY(symbol->st_other) != 0;
        if ((found != own && !later) || protected || (library->symbolic && symbol->st_shndx != SHN_UNDEF))
            return -1;
        n++;
    }
    return n;
}

static bool reached_one(const struct library_tables *library, const struct guarded *guarded)
{
    const void *own = dlsym(RTLD_DEFAULT, guarded->name), *original = guard_find_original(guarded->name);
    Dl_info here, there;
    if (guarded->optional && original == NULL)
        return true;
    if (own == NULL || original == NULL || own == original || dladdr(own, &there) == 0 ||
        dladdr((const void *)all_guarded, &here) == 0 || here.dli_fbase != there.dli_fbase)
        return false;
    const int data = reached_count(library, &library->data, guarded->name, own, original);
    const int calls = reached_count(library, &library->calls, guarded->name, own, original);
    return data >= 0 && calls >= 0 && (data + calls > 0 || guarded->optional);
}

/* Return a function of the part that is not reached; NULL: all functions are reached. */
static const char *reached_look(enum guard_part part)
{
    struct library_tables library;
    struct link_map *map = NULL;
    Dl_info info;
    const void *version = dlsym(RTLD_DEFAULT, "PMIx_Get_version");
    if (version == NULL || dladdr1(version, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL)
        return "PMIx_Get_version";
    reached_read(map, &library);
    if (library.strings == NULL || library.symbols == NULL || library.data.each < sizeof(ElfW(Rel)))
        return "PMIx_Get_version";
    for (size_t i = 0; i < sizeof(all_guarded) / sizeof(all_guarded[0]); i++)
        if (guarded_in(&all_guarded[i], part) && !reached_one(&library, &all_guarded[i]))
            return all_guarded[i].name;
    return NULL;
}

static const char *guard_unreached(enum guard_part part)
{
    static struct {
        atomic_bool looked;
        const char *_Atomic name;
    } found[GUARD_JOBS + 1]; /* the same for all callers */
    if (!atomic_load(&found[part].looked)) {
        atomic_store(&found[part].name, reached_look(part));
        atomic_store(&found[part].looked, true);
    }
    return atomic_load(&found[part].name);
}

/* ---- active parts -------------------------------------------------------------------------------------- */

/* Return whether the running library is the one that the guard was compiled with, and one that the part
 * supports. */
static bool guard_knows(enum guard_part part)
{
    int major = 0, minor = 0, release = 0;
    const char *version = PMIx_Get_version(); /* "OpenPMIx 4.2.2, repo rev: ..." */
    const char *number = version == NULL ? NULL : strpbrk(version, "0123456789");
    return (part == GUARD_JOBS ? GUARD_KNOWS_JOBS : GUARD_KNOWS_LIBRARY) && number != NULL &&
           sscanf(number, "%d.%d.%d", &major, &minor, &release) == 3 && major == PMIX_VERSION_MAJOR &&
           minor == PMIX_VERSION_MINOR && release == PMIX_VERSION_RELEASE;
}

bool guard_is_off(void)
{
    const char *off = getenv("FABRICD_NO_REPAIR");
    return off != NULL && strcmp(off, "1") == 0;
}

bool guard_why_not_done(enum guard_part part, char why[GUARD_WHY])
{
    Dl_info info;
    const void *version = dlsym(RTLD_DEFAULT, "PMIx_Get_version");
    why[0] = '\0';
    if (!guard_knows(part))
        snprintf(why, GUARD_WHY, "this is %s", PMIx_Get_version());
    else if (guard_unreached(part) != NULL)
        snprintf(
            why, GUARD_WHY,
            "%s does not call the repair of %s() (linked with -Bsymbolic-functions, or stripped of symbols)",
            version != NULL && dladdr(version, &info) != 0 ? info.dli_fname : "the library",
            guard_unreached(part));
    return why[0] != '\0';
}

bool guard_does(enum guard_part part)
{
    const bool other = guard_server() == GUARD_SERVER_OTHER;
    if (other && part != GUARD_FABRIC)
        return false;
    if (!other && part == GUARD_FABRIC)
        part = GUARD_REQUESTS;
    return !guard_is_off() && guard_knows(part) && guard_unreached(part) == NULL;
}

enum guard_server guard_server(void)
{
    return (enum guard_server)atomic_load(&server_kind);
}

void guard_serve(enum guard_server server)
{
    atomic_store(&server_kind, (int)server);
}

/* ---- log -------------------------------------------------------------------------------------------------
 */

void guard_log_to(void (*fn)(const char *line))
{
    atomic_store(&log_fn, fn);
}

/* Untrusted clients must not fill the log: each line is logged once in LOG_AGAIN_S. */
void guard_log(const char *line)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        const char *line;
        time_t logged;
    } lines[MOST_LINES];
    void (*fn)(const char *) = atomic_load(&log_fn);
    struct timespec now;
    bool due = false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MOST_LINES; i++) {
        if (lines[i].line != NULL && lines[i].line != line)
            continue;
        due = lines[i].line == NULL || now.tv_sec - lines[i].logged >= LOG_AGAIN_S;
        if (due) {
            lines[i].line = line;
            lines[i].logged = now.tv_sec;
        }
        break;
    }
    pthread_mutex_unlock(&lock);
    if (due && fn != NULL)
        fn(line);
}
