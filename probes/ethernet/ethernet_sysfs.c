/* ethernet_sysfs.c - what stands of a network interface below /sys/class/net. */
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/core/sysfs.h"
#include "probes/ethernet/ethernet.h"

#define MAX_DEPTH 4 /* a VLAN on a bond on an interface is 2 */

bool ethernet_pci(const char *text, char *out, size_t size)
{
    unsigned domain, bus, device, function;
    int n = -1;
    if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &n) != 4 || n < 0 ||
        text[n] != '\0' || !isxdigit((unsigned char)text[0]))
        return false;
    return (size_t)snprintf(out, size, "%04x:%02x:%02x:%02x", domain, bus, device, function) < size;
}

/* Where a link leads to; false: it is none. */
static bool ethernet_read_link(const char *folder, const char *name, char out[PATH_MAX])
{
    char path[PATH_MAX];
    return (size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) < sizeof(path) &&
           realpath(path, out) != NULL;
}

/* Is it the interface that this process sees under the name? Another namespace's sysfs may be mounted. */
static bool is_this(const char *folder, unsigned index, const unsigned char *mac, size_t n)
{
    char text[128];
    if (sysfs_number(folder, "ifindex") != index)
        return false;
    if (n == 0 || !sysfs_line(folder, "address", text, sizeof(text)))
        return n == 0;
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        if (strlen(text) < 3 * i + 2 || sscanf(text + 3 * i, "%2x", &byte) != 1 || byte != mac[i])
            return false;
    }
    return true;
}

/*
 * The bus is that of the nearest folder above the device that tells one: a virtio device on PCI is on PCI,
 * but an adapter on USB is not where the USB controller is.
 */
static void read_bus(const char *device, struct ethernet_device *out)
{
    char path[PATH_MAX];
    sysfs_link(device, "subsystem", out->bus, sizeof(out->bus));
    snprintf(path, sizeof(path), "%s", device);
    for (char *slash = strrchr(path, '/'); slash != NULL && slash > path; slash = strrchr(path, '/')) {
        if (strncmp(slash + 1, "usb", 3) == 0 && isdigit((unsigned char)slash[4])) {
            strcpy(out->bus, "USB");
            return;
        }
        if (ethernet_pci(slash + 1, out->pci, sizeof(out->pci))) {
            strcpy(out->bus, "PCI");
            out->vendor = sysfs_number(path, "vendor");
            out->part = sysfs_number(path, "device");
            return;
        }
        *slash = '\0';
    }
}

/* Is a device behind it or behind one that it stands on (a VLAN, a bond, a bridge with its ports)? */
static bool has_hardware(const char *folder, unsigned depth)
{
    char path[PATH_MAX];
    bool found = ethernet_read_link(folder, "device", path);
    DIR *dir = found || depth == 0 ? NULL : opendir(folder);
    if (dir == NULL)
        return found;
    for (struct dirent *entry = readdir(dir); entry != NULL && !found; entry = readdir(dir))
        found = strncmp(entry->d_name, "lower_", 6) == 0 && ethernet_read_link(folder, entry->d_name, path) &&
                has_hardware(path, depth - 1);
    closedir(dir);
    return found;
}

void ethernet_sysfs(const char *sysfs, const char *interface, unsigned index, const unsigned char *mac,
                    size_t n, struct ethernet_device *out)
{
    char folder[PATH_MAX], device[PATH_MAX];
    memset(out, 0, sizeof(*out));
    if ((size_t)snprintf(folder, sizeof(folder), "%s/class/net/%s", sysfs, interface) >= sizeof(folder) ||
        !is_this(folder, index, mac, n))
        return;
    out->found = true;
    out->own = ethernet_read_link(folder, "device", device);
    out->hardware = has_hardware(folder, MAX_DEPTH);
    out->mtu = sysfs_number(folder, "mtu");
    out->speed = sysfs_number(folder, "speed");
    if (!sysfs_line(folder, "operstate", out->state, sizeof(out->state)))
        out->state[0] = '\0';
    if (!out->own) {
        strcpy(out->bus, "virtual");
        return;
    }
    read_bus(device, out);
    sysfs_link(device, "driver", out->driver, sizeof(out->driver));
}
