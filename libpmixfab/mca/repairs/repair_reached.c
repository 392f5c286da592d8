/*
 * repair_reached.c - are the repairs called by the library of this process?
 *
 * A repair is called where the library looks its function up by name, and finds this program's first. A
 * library of the same version may be linked so that it does not (-Bsymbolic-functions, protected symbols), or
 * may hide the function that a repair hands on to. Its relocations say so, before it is started.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pmix.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "mca/repairs/repair.h"
#include "mca/repairs/repair_versions.h"

#if __ELF_NATIVE_CLASS == 64
#define REACHED_SYMBOL(info) ELF64_R_SYM(info)
#else
#define REACHED_SYMBOL(info) ELF32_R_SYM(info)
#endif

struct repaired {
    const char *name;
    enum fab_repair_part part;
    bool optional; /* of a library that the PMIx library may load later, or do without */
};

static const struct repaired all_repaired[] = {
    {"pmix_server_fabric_register", FAB_REPAIR_REQUESTS, false},
    {"pmix_server_fabric_update", FAB_REPAIR_REQUESTS, false},
#ifndef REPAIRS_REGISTER_ONLY
    {"pmix_server_get", FAB_REPAIR_REQUESTS, false},
#if PMIX_VERSION_MAJOR < 5
    {"PMIx_Query_info_nb", FAB_REPAIR_REQUESTS, false},
#else
    {"pmix_parse_localquery", FAB_REPAIR_REQUESTS, false},
    {"pmix_server_refresh_cache", FAB_REPAIR_REQUESTS, false},
#endif
    {"pmix_bfrops_base_assign_module", FAB_REPAIR_CONNECTIONS, false},
    {"pmix_ptl_base_connection_handler", FAB_REPAIR_CONNECTIONS, false},
    {"pmix_ptl_base_process_msg", FAB_REPAIR_CONNECTIONS, false},
    {"pmix_ptl_base_recv_blocking", FAB_REPAIR_CONNECTIONS, false},
    {"pmix_ptl_base_recv_handler", FAB_REPAIR_CONNECTIONS, false},
    {"pmix_ptl_base_send_blocking", FAB_REPAIR_CONNECTIONS, false},
    {"pmix_ptl_base_send_handler", FAB_REPAIR_CONNECTIONS, false},
    {"pmix_server_notify_client_of_event", FAB_REPAIR_CONNECTIONS, false},
    {"accept", FAB_REPAIR_CONNECTIONS, false},
    {"close", FAB_REPAIR_CONNECTIONS, false},
    {"munge_encode", FAB_REPAIR_CONNECTIONS, true},
    {"munge_decode", FAB_REPAIR_CONNECTIONS, true},
#endif
};

/* What the dynamic section of a loaded library says. */
struct library_tables {
    const char *base;
    const char *strings;
    const ElfW(Sym) * symbols;
    struct relocations {
        const char *first;
        size_t bytes, each;
    } data, calls;
    bool symbolic; /* it looks for each name in itself first */
};

static const void *reached_pointer(const struct link_map *map, const ElfW(Dyn) * entry)
{
    const uintptr_t there = entry->d_un.d_ptr; /* most linkers have added the base by now */
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

/* How often the library looks this name up there; -1: one of these did not find `own`. A call that was not
 * made yet has found nothing so far. */
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

static bool reached_one(const struct library_tables *library, const struct repaired *repaired)
{
    const void *own = dlsym(RTLD_DEFAULT, repaired->name), *original = fab_repair_original(repaired->name);
    Dl_info here, there;
    if (repaired->optional && original == NULL)
        return true;
    if (own == NULL || original == NULL || own == original || dladdr(own, &there) == 0 ||
        dladdr((const void *)all_repaired, &here) == 0 || here.dli_fbase != there.dli_fbase)
        return false;
    const int data = reached_count(library, &library->data, repaired->name, own, original);
    const int calls = reached_count(library, &library->calls, repaired->name, own, original);
    return data >= 0 && calls >= 0 && (data + calls > 0 || repaired->optional);
}

/* NULL: all of the part are. */
static const char *reached_look(enum fab_repair_part part)
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
    for (size_t i = 0; i < sizeof(all_repaired) / sizeof(all_repaired[0]); i++)
        if ((all_repaired[i].part == part || part == FAB_REPAIR_JOBS) &&
            !reached_one(&library, &all_repaired[i]))
            return all_repaired[i].name;
    return NULL;
}

bool fab_repair_why_not(enum fab_repair_part part, char why[FAB_REPAIR_WHY])
{
    Dl_info info;
    const void *version = dlsym(RTLD_DEFAULT, "PMIx_Get_version");
    why[0] = '\0';
    if (!fab_repair_known(part))
        snprintf(why, FAB_REPAIR_WHY, "this is %s", PMIx_Get_version());
    else if (fab_repair_unreached(part) != NULL)
        snprintf(
            why, FAB_REPAIR_WHY,
            "%s does not call the repair of %s() (linked with -Bsymbolic-functions, or without its symbols?)",
            version != NULL && dladdr(version, &info) != 0 ? info.dli_fname : "the library",
            fab_repair_unreached(part));
    return why[0] != '\0';
}

const char *fab_repair_unreached(enum fab_repair_part part)
{
    static struct {
        atomic_bool looked;
        const char *_Atomic name;
    } found[FAB_REPAIR_JOBS + 1]; /* the same for all who look */
    if (!atomic_load(&found[part].looked)) {
        atomic_store(&found[part].name, reached_look(part));
        atomic_store(&found[part].looked, true);
    }
    return atomic_load(&found[part].name);
}

bool fab_repair_wanted(enum fab_repair_part part)
{
    return !fab_repair_is_off() && fab_repair_known(part) && fab_repair_unreached(part) == NULL;
}
