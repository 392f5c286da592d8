#include "fabricd/node/node_netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xxhash.h>

#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/watch.h"
#include "topo/base/backoff.h"

#define BUFFER_SIZE 65536 /* of a socket; an overflow counts as a change */

struct devices {
    int route, uevent, plain; /* plain: an ordinary socket, to query MTUs */
    struct watch *route_watch, *uevent_watch;
    struct timer *settled;
    uint64_t fingerprint;
    struct backoff less_often; /* milliseconds */
    int64_t debounce_ms;
    bool certain; /* a device changed, even if the fingerprint is equal */
    void (*changed)(void *cbdata);
    void *cbdata;
};

/* ---- the fingerprint ---------------------------------------------------------------------------- */

/* One entry of the list, without padding or undefined bytes. */
struct record {
    char name[IF_NAMESIZE];
    uint32_t flags, mtu, family, prefix;
    unsigned char address[32];
};

static unsigned prefix_length(const unsigned char *mask, size_t n)
{
    unsigned bits = 0;
    for (size_t i = 0; i < n; i++)
        bits += (unsigned)__builtin_popcount(mask[i]);
    return bits;
}

static void take_address(struct record *record, const struct ifaddrs *entry)
{
    const struct sockaddr *address = entry->ifa_addr, *mask = entry->ifa_netmask;
    if (address == NULL)
        return;
    record->family = address->sa_family;
    if (address->sa_family == AF_PACKET) {
        const struct sockaddr_ll *link = (const void *)address;
        size_t n = link->sll_halen;
        memcpy(record->address, link->sll_addr, n > sizeof(link->sll_addr) ? sizeof(link->sll_addr) : n);
    } else if (address->sa_family == AF_INET) {
        memcpy(record->address, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
        if (mask != NULL)
            record->prefix =
                prefix_length((const void *)&((const struct sockaddr_in *)(const void *)mask)->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        memcpy(record->address, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
        if (mask != NULL)
            record->prefix = prefix_length(
                (const void *)&((const struct sockaddr_in6 *)(const void *)mask)->sin6_addr, 16);
    }
}

uint64_t devices_fingerprint(const struct ifaddrs *list, unsigned (*mtu)(const char *name, void *cbdata),
                             void *cbdata)
{
    uint64_t sum = 0, n = 0;
    for (const struct ifaddrs *entry = list; entry != NULL; entry = entry->ifa_next) {
        struct record record;
        if (entry->ifa_name == NULL || (entry->ifa_flags & IFF_LOOPBACK) != 0)
            continue;
        memset(&record, 0, sizeof(record));
        strncpy(record.name, entry->ifa_name, sizeof(record.name) - 1);
        record.flags = entry->ifa_flags & (IFF_UP | IFF_RUNNING);
        record.mtu = mtu(record.name, cbdata);
        take_address(&record, entry);
        sum += XXH3_64bits(&record, sizeof(record)); /* a sum does not depend on their order */
        n++;
    }
    return XXH3_64bits_withSeed(&sum, sizeof(sum), n);
}

static unsigned netlink_query_mtu(const char *name, void *cbdata)
{
    const struct devices *d = cbdata;
    struct ifreq request = {.ifr_mtu = 0};
    strncpy(request.ifr_name, name, sizeof(request.ifr_name) - 1);
    return ioctl(d->plain, SIOCGIFMTU, &request) == 0 ? (unsigned)request.ifr_mtu : 0;
}

/* Return the fingerprint; 0: not available. */
static uint64_t read_fingerprint(struct devices *d)
{
    struct ifaddrs *list;
    if (getifaddrs(&list) != 0)
        return 0;
    uint64_t fingerprint = devices_fingerprint(list, netlink_query_mtu, d);
    freeifaddrs(list);
    return fingerprint;
}

/* ---- settling ----------------------------------------------------------------------------------- */

static void netlink_debounce(struct devices *d)
{
    if (!timer_pending(d->settled)) /* set by the first event of a burst: no endless delay */
        timer_after(d->settled, d->debounce_ms);
}

static void on_settled(void *arg)
{
    struct devices *d = arg;
    uint64_t fingerprint = read_fingerprint(d);
    if (!d->certain && fingerprint == d->fingerprint)
        return;
    d->fingerprint = fingerprint;
    d->certain = false;
    d->changed(d->cbdata);
}

void netlink_scanned(struct devices *d, bool found)
{
    if (d == NULL)
        return;
    if (found)
        backoff_reset(&d->less_often);
    d->debounce_ms = backoff_next(&d->less_often);
}

/* ---- the sockets -------------------------------------------------------------------------------- */

/* Ignore messages of other processes: they could make fabricd scan all the time. */
static ssize_t netlink_receive(int fd, char *buffer, size_t size)
{
    struct sockaddr_nl from = {.nl_pid = 1};
    socklen_t len = sizeof(from);
    ssize_t n = recvfrom(fd, buffer, size, MSG_DONTWAIT, (struct sockaddr *)&from, &len);
    if (n > 0 && from.nl_pid != 0)
        return 0;
    return n;
}

static void on_route(int fd, void *arg)
{
    struct devices *d = arg;
    char buffer[16384];
    /* The messages' content is not used: the fingerprint is compared when the burst is over. */
    while (netlink_receive(fd, buffer, sizeof(buffer)) >= 0 || errno == EINTR)
        ;
    if (errno == ENOBUFS)
        d->certain = true;
    netlink_debounce(d);
}

/* Return whether the event is of this subsystem. It is a list of texts, each ended by a zero:
 * "add@/devices/..." and KEY=VALUE. */
static bool is_of(const char *text, size_t n, const char *subsystem)
{
    for (size_t at = 0; at < n; at += strnlen(text + at, n - at) + 1)
        if (strnlen(text + at, n - at) < n - at && strcmp(text + at, subsystem) == 0)
            return true;
    return false;
}

static void on_uevent(int fd, void *arg)
{
    struct devices *d = arg;
    char buffer[16384];
    bool told = false;
    ssize_t n;
    while ((n = netlink_receive(fd, buffer, sizeof(buffer))) >= 0 || errno == EINTR) {
        if (n <= 0)
            continue;
        bool device = is_of(buffer, (size_t)n, "SUBSYSTEM=infiniband") ||
                      is_of(buffer, (size_t)n, "SUBSYSTEM=infiniband_verbs") ||
                      is_of(buffer, (size_t)n, "SUBSYSTEM=pci");
        d->certain |= device;
        told |= device || is_of(buffer, (size_t)n, "SUBSYSTEM=net");
    }
    if (errno == ENOBUFS)
        told = d->certain = true;
    if (told)
        netlink_debounce(d);
}

static int open_socket(int protocol, unsigned groups)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
    int size = BUFFER_SIZE;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Without events of the kernel (in a container, for example), the host is scanned at intervals only. */
static bool listen_to(struct event_base *base, struct devices *d, int fd, watch_fn fn, struct watch **out,
                      const char *what)
{
    if (fd < 0) {
        log_warning(
            "devices: no kernel events of %s: %s; their changes are noticed at the next host scan only", what,
            strerror(errno));
        return true;
    }
    *out = watch_new(base, fd, WATCH_READ, fn, d);
    return *out != NULL;
}

int devices_new(struct event_base *base, void (*changed)(void *cbdata), void *cbdata, struct devices **out,
                struct fab_err *err)
{
    struct devices *d = *out = calloc(1, sizeof(*d));
    if (d == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    *d = (struct devices){.less_often = {.first = NETLINK_DEBOUNCE_MS, .most = NETLINK_DEBOUNCE_MAX_MS},
                          .changed = changed,
                          .cbdata = cbdata};
    netlink_scanned(d, true);
    d->plain = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    d->route = open_socket(NETLINK_ROUTE, RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR);
    bool good = listen_to(base, d, d->route, on_route, &d->route_watch, "network interfaces");
    d->uevent = open_socket(NETLINK_KOBJECT_UEVENT, 1);
    good = listen_to(base, d, d->uevent, on_uevent, &d->uevent_watch, "RDMA devices") && good;
    d->settled = timer_new(base, on_settled, d);
    if (!good || d->settled == NULL) {
        devices_free(d);
        *out = NULL;
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    d->fingerprint = read_fingerprint(d); /* after the sockets, so that no change is missed */
    return PMIXFAB_OK;
}

void devices_free(struct devices *d)
{
    if (d == NULL)
        return;
    watch_free(d->route_watch);
    watch_free(d->uevent_watch);
    timer_free(d->settled);
    int fds[] = {d->route, d->uevent, d->plain};
    for (size_t i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(d);
}
