/* The fingerprint of a host's interfaces: what is reported changes it, and nothing else does. */

#include <arpa/inet.h>
#include <net/if.h>
#include <netpacket/packet.h>

#include "fabricd/node/node_netlink.h"
#include "test/unit/test.h"

#define MAX 64

/* A host's interfaces as the kernel lists them: one entry a link, one an address. */
struct host {
    struct ifaddrs list[MAX];
    struct sockaddr_storage address[MAX], mask[MAX];
    char name[MAX][IF_NAMESIZE];
    unsigned n, mtu;
};

static unsigned mtu_of(const char *name, void *cbdata)
{
    const struct host *host = cbdata;
    return strcmp(name, "eth0") == 0 ? host->mtu : 1500;
}

static struct ifaddrs *append(struct host *host, const char *name, unsigned flags)
{
    assert_true(host->n < MAX);
    unsigned i = host->n++;
    struct ifaddrs *entry = &host->list[i];
    memset(entry, 0, sizeof(*entry));
    snprintf(host->name[i], sizeof(host->name[i]), "%s", name);
    entry->ifa_name = host->name[i];
    entry->ifa_flags = flags;
    return entry;
}

static void add_link(struct host *host, const char *name, unsigned flags, const unsigned char *mac)
{
    struct sockaddr_ll *link = (void *)&host->address[host->n];
    memset(link, 0, sizeof(host->address[0]));
    link->sll_family = AF_PACKET;
    link->sll_halen = 6;
    memcpy(link->sll_addr, mac, 6);
    append(host, name, flags)->ifa_addr = (struct sockaddr *)link;
}

static void add_address(struct host *host, const char *name, unsigned flags, const char *text,
                        unsigned prefix)
{
    unsigned i = host->n;
    unsigned char *bits, *mask;
    memset(&host->address[i], 0, sizeof(host->address[i]));
    memset(&host->mask[i], 0, sizeof(host->mask[i]));
    if (strchr(text, ':') != NULL) {
        bits = (void *)&((struct sockaddr_in6 *)&host->address[i])->sin6_addr;
        mask = (void *)&((struct sockaddr_in6 *)&host->mask[i])->sin6_addr;
        host->address[i].ss_family = AF_INET6;
    } else {
        bits = (void *)&((struct sockaddr_in *)&host->address[i])->sin_addr;
        mask = (void *)&((struct sockaddr_in *)&host->mask[i])->sin_addr;
        host->address[i].ss_family = AF_INET;
    }
    assert_int_equal(inet_pton(host->address[i].ss_family, text, bits), 1);
    for (unsigned b = 0; b < prefix; b++)
        mask[b / 8] |= (unsigned char)(0x80 >> b % 8);
    struct ifaddrs *entry = append(host, name, flags);
    entry->ifa_addr = (struct sockaddr *)&host->address[i];
    entry->ifa_netmask = (struct sockaddr *)&host->mask[i];
}

static uint64_t fingerprint(struct host *host)
{
    for (unsigned i = 0; i < host->n; i++)
        host->list[i].ifa_next = i + 1 < host->n ? &host->list[i + 1] : NULL;
    return devices_fingerprint(host->n == 0 ? NULL : host->list, mtu_of, host);
}

static const unsigned char MAC0[] = {2, 0, 0, 0, 0, 1}, MAC1[] = {2, 0, 0, 0, 0, 2};
#define ON (IFF_UP | IFF_RUNNING)

/* without: one entry that is left out; -1: all are there. */
static void fill(struct host *host, int without)
{
    host->n = 0;
    host->mtu = 1500;
    for (int i = 0; i < 6; i++) {
        if (i == without)
            continue;
        if (i == 0)
            add_link(host, "eth0", ON, MAC0);
        else if (i == 1)
            add_link(host, "eth1", IFF_UP, MAC1);
        else if (i == 2)
            add_address(host, "eth0", ON, "10.91.0.2", 16);
        else if (i == 3)
            add_address(host, "eth0", ON, "fd00::2", 64);
        else if (i == 4)
            add_address(host, "eth1", IFF_UP, "10.92.0.2", 24);
        else
            add_address(host, "eth1", IFF_UP, "fe80::1", 64);
    }
}

TEST(test_each_fact_counts)
{
    static struct host a, b;
    fill(&a, -1);
    const uint64_t before = fingerprint(&a);
    for (int i = 0; i < 6; i++) {
        fill(&b, i);
        assert_int_not_equal(fingerprint(&b), before);
    }
    fill(&b, -1);
    assert_int_equal(fingerprint(&b), before);
    for (int change = 0; change < 6; change++) {
        fill(&b, -1);
        if (change == 0)
            b.mtu = 9000;
        else if (change == 1)
            b.list[0].ifa_flags &= ~(unsigned)IFF_RUNNING; /* the cable is out */
        else if (change == 2)
            ((struct sockaddr_ll *)&b.address[0])->sll_addr[5] = 9;
        else if (change == 3)
            ((unsigned char *)&((struct sockaddr_in *)&b.mask[2])->sin_addr)[2] = 0xff; /* a /24 */
        else if (change == 4)
            ((unsigned char *)&((struct sockaddr_in6 *)&b.address[3])->sin6_addr)[15] = 3;
        else
            strcpy(b.name[1], "eth2");
        assert_int_not_equal(fingerprint(&b), before);
    }
    b.n = 0;
    assert_int_not_equal(fingerprint(&b), before);
}

TEST(test_the_rest_does_not)
{
    static struct host a, b;
    fill(&a, -1);
    const uint64_t before = fingerprint(&a);
    fill(&b, -1);
    b.list[0].ifa_flags |= IFF_PROMISC | IFF_MULTICAST; /* somebody listens */
    assert_int_equal(fingerprint(&b), before);
    ((struct sockaddr_ll *)&b.address[0])->sll_ifindex = 7;
    ((struct sockaddr_in *)&b.address[2])->sin_port = 1;
    assert_int_equal(fingerprint(&b), before);
    add_link(&b, "lo", ON | IFF_LOOPBACK, MAC0);
    add_address(&b, "lo", ON | IFF_LOOPBACK, "127.0.0.1", 8);
    assert_int_equal(fingerprint(&b), before);
}

/* The kernel lists in any order. */
TEST(test_order)
{
    static struct host a, b;
    fill(&a, -1);
    const uint64_t before = fingerprint(&a);
    srand(1);
    for (int round = 0; round < 100; round++) {
        fill(&b, -1);
        for (unsigned i = b.n - 1; i > 0; i--) {
            unsigned j = (unsigned)rand() % (i + 1);
            struct ifaddrs kept = b.list[i];
            b.list[i] = b.list[j];
            b.list[j] = kept;
        }
        assert_int_equal(fingerprint(&b), before);
    }
}

/* Entries that some kinds of interface have: no address, a family of another kind, a MAC of 20 bytes. */
TEST(test_odd_entries)
{
    static struct host a, b;
    fill(&a, -1);
    const uint64_t before = fingerprint(&a);
    fill(&b, -1);
    append(&b, "tun0", IFF_UP);
    assert_int_not_equal(fingerprint(&b), before);
    fill(&b, -1);
    add_link(&b, "ib0", ON, MAC0);
    ((struct sockaddr_ll *)&b.address[b.n - 1])->sll_halen = 20; /* more than the structure holds */
    assert_int_not_equal(fingerprint(&b), before);
    b.list[0].ifa_name = NULL;
    assert_int_not_equal(fingerprint(&b), 0);
}
