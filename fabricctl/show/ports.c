/* ports.c - what the daemon knows of ports and no snapshot has. */
#include "fabricctl/show/ports.h"

#include <inttypes.h>

#include "fabricctl/core/ctl_control.h"

#define PORTS_SECONDS 10

/* The nodes by GUID; NULL: nobody says it (over PMIx, in exports, or without a daemon), which is no failure.
 */
static const json_t *ports_nodes(const struct ctl *ctl)
{
    struct ctl_ports *ports = ctl->ports;
    char why[CTL_WHY_SIZE];

    if (!ports->asked && ctl->uri == NULL && !ctl->snapshots_only)
        ctl_control_ask(ctl->rundir, json_pack("{s:s}", "op", "ports"), PORTS_SECONDS, &ports->answer, why);
    ports->asked = true;
    return json_object_get(ports->answer, "nodes");
}

static const json_t *ports_node(const struct ctl *ctl, uint64_t guid)
{
    char key[24];

    snprintf(key, sizeof key, "0x%016" PRIx64, guid);
    return json_object_get(ports_nodes(ctl), key);
}

/* [number, LID, "4xHDR"] */
static const json_t *ports_port(const struct ctl *ctl, uint64_t guid, uint32_t port)
{
    const json_t *ports = json_object_get(ports_node(ctl, guid), "ports"), *one;
    size_t i;

    json_array_foreach(ports, i, one)
    {
        if (json_integer_value(json_array_get(one, 0)) == (json_int_t)port)
            return one;
    }
    return NULL;
}

void ctl_put_lid(struct ctl_table *table, const struct ctl *ctl, uint64_t guid, uint32_t port)
{
    const json_t *lid = port == 0 ? json_object_get(ports_node(ctl, guid), "lid")
                                  : json_array_get(ports_port(ctl, guid, port), 1);

    if (json_integer_value(lid) > 0)
        ctl_put_number(table, json_integer_value(lid));
    else
        ctl_put_null(table);
}

void ctl_put_width(struct ctl_table *table, const struct ctl *ctl, uint64_t guid, uint32_t port)
{
    ctl_put_text(table, json_string_value(json_array_get(ports_port(ctl, guid, port), 2)));
}
