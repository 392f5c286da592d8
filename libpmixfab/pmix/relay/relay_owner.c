/*
 * relay_owner.c - check the owner of the socket at the address in a run directory. While a PMIx server
 * without the guard is replaced, any user of this host can take its port.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/stat.h>

#include "pmix/relay/relay_state.h"
#include "topo/base/library_log.h"

#define TCP_LISTENS 0x0a

/*
 * Find the user whose socket listens at this loopback address, in the kernel's table. Return false if there
 * is none.
 */
static bool owner_of_listener(const struct sockaddr_in *address, uid_t *uid)
{
    char line[512];
    bool found = false;
    FILE *table = fopen("/proc/net/tcp", "re");
    while (table != NULL && !found && fgets(line, sizeof(line), table) != NULL) {
        uint32_t ip;
        unsigned port, state, owner;
        if (sscanf(line, " %*u: %" SCNx32 ":%x %*x:%*x %x %*x:%*x %*x:%*x %*x %u", &ip, &port, &state,
                   &owner) != 4 ||
            state != TCP_LISTENS || port != ntohs(address->sin_port) ||
            (ip != address->sin_addr.s_addr && ip != INADDR_ANY))
            continue;
        *uid = owner;
        found = true;
    }
    if (table != NULL)
        fclose(table);
    return found;
}

/*
 * Return whether this user owns the run directory, or the folder of its PMIx server: inside it, or that of a
 * unit beside it.
 */
static bool owner_is_fabricds(const char *rundir, uid_t uid)
{
    static const char *const folders[] = {"", "/pmix", "-pmix"};
    bool ours = uid == 0;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !ours; i++) {
        char path[4096];
        struct stat st;
        snprintf(path, sizeof(path), "%s%s", rundir, folders[i]);
        ours = lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == uid;
    }
    return ours;
}

bool relay_owner_is_trusted(const char *rundir, const struct addrinfo *address)
{
    const struct sockaddr_in *in = (const void *)address->ai_addr;
    uid_t uid;
    if (address->ai_family != AF_INET || ntohl(in->sin_addr.s_addr) >> 24 != 127 ||
        !owner_of_listener(in, &uid) || owner_is_fabricds(rundir, uid))
        return true;
    fab_log(PMIXFAB_LOG_WARNING, "relay: not connected: port %u of %s belongs to user %u, not to fabricd",
            ntohs(in->sin_port), rundir, (unsigned)uid);
    return false;
}
