/* ibnetdisc_port.c - the port of this host that is asked through. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probes/ibnetdisc/ibnetdisc.h"

#define MAD_CLASS_DIR "/sys/class/infiniband_mad"

int ibnetdisc_target(const char *arg, char ca[UMAD_CA_NAME_LEN], int *port, struct fab_err *err)
{
    ca[0] = '\0';
    *port = 0;
    if (arg == NULL)
        return PMIXFAB_OK;
    size_t len = strcspn(arg, ":");
    if (len >= UMAD_CA_NAME_LEN ||
        strspn(arg, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.") < len)
        return fab_fail(err, PMIXFAB_ERR_INVAL,
                        "ibnetdisc:%s: no name of an HCA; give ibnetdisc[:CA[:PORT]], as ibnetdisc:mlx5_0:1",
                        arg);
    if (arg[len] == ':') {
        const char *p = arg + len + 1;
        unsigned v = 0;
        for (; *p >= '0' && *p <= '9' && v < 1000; p++)
            v = v * 10 + (unsigned)(*p - '0');
        if (*p != '\0' || v < 1 || v > 254)
            return fab_fail(err, PMIXFAB_ERR_INVAL, "ibnetdisc:%s: \"%s\" is no port; give 1 to 254", arg,
                            arg + len + 1);
        *port = (int)v;
    }
    memcpy(ca, arg, len);
    ca[len] = '\0';
    return PMIXFAB_OK;
}

const char *ibnetdisc_state_name(unsigned state)
{
    const char *const names[] = {"no state", "down", "init", "armed", "active"};
    return names[state <= 4 ? state : 0];
}

/* libibumad is asked first and the files only to explain its no, because what it sees may be simulated. (Its
 * list of HCAs is of no use: it names one even where there is none.) */
int ibnetdisc_port(const char *ca, int num, umad_port_t *port, char *why, size_t size)
{
    char name[UMAD_CA_NAME_LEN];
    snprintf(name, sizeof(name), "%s", ca);
    if (umad_init() == 0 && umad_get_port(name[0] != '\0' ? name : NULL, num, port) == 0)
        return PMIXFAB_OK;
    if ((ca[0] != '\0' || num > 0) && umad_get_port(NULL, 0, port) == 0) {
        char wanted[16] = "";
        if (num > 0)
            snprintf(wanted, sizeof(wanted), ":%d", num);
        snprintf(why, size, "no InfiniBand port %s%s on this host; there is %s:%d", ca, wanted, port->ca_name,
                 port->portnum);
        umad_release_port(port);
    } else if (access(MAD_CLASS_DIR, F_OK) != 0) {
        snprintf(why, size,
                 "no InfiniBand port: " MAD_CLASS_DIR
                 " is absent (no HCA, or the module ib_umad is not loaded)");
    } else {
        snprintf(why, size, "no InfiniBand port: " MAD_CLASS_DIR " names none that can be read");
    }
    return PMIXFAB_ERR_NOTFOUND;
}

/* A port that no subnet manager has brought up sees itself at most. That must not pass for the whole subnet.
 */
static int check_port(const umad_port_t *port, struct fab_err *err)
{
    if (strcmp(port->link_layer, "Ethernet") == 0)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                        "ibnetdisc:%s:%d: the port runs Ethernet; give another one, as ibnetdisc:mlx5_0:1",
                        port->ca_name, port->portnum);
    if (port->state == FAB_PORT_INIT || port->state == FAB_PORT_ARMED)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                        "ibnetdisc:%s:%d: no subnet manager has brought the port up (state %s); start OpenSM",
                        port->ca_name, port->portnum, ibnetdisc_state_name(port->state));
    if (port->state != FAB_PORT_ACTIVE)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                        "ibnetdisc:%s:%d: the port has no link (state %s); check its cable", port->ca_name,
                        port->portnum, ibnetdisc_state_name(port->state));
    return PMIXFAB_OK;
}

int ibnetdisc_usable(const struct probe_config *config, umad_port_t *port, struct fab_err *err)
{
    char ca[UMAD_CA_NAME_LEN], why[200];
    int num;
    int rc = ibnetdisc_target(config->arg, ca, &num, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = ibnetdisc_port(ca, num, port, why, sizeof(why));
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "ibnetdisc: %s", why);
    rc = check_port(port, err);
    if (rc != PMIXFAB_OK)
        umad_release_port(port);
    return rc;
}
