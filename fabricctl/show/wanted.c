/* wanted.c - the names on the command line, and what has them. */
#include "fabricctl/show/wanted.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fabricctl/core/source.h"
#include "fabricctl/core/suggest.h"

static bool wants(const struct ctl *ctl, const char *const *names, size_t n, const char *host)
{
    bool any = ctl->n_args == 0;

    for (int i = 0; i < ctl->n_args; i++) {
        bool is = host != NULL && ctl_same_host(ctl->args[i], host);

        for (size_t k = 0; k < n && !is; k++)
            is = strcmp(ctl->args[i], names[k]) == 0;
        if (is)
            ctl->met[i] = true;
        any |= is;
    }
    return any;
}

static const char *guid_text(uint64_t guid, char text[24])
{
    snprintf(text, 24, "0x%016" PRIx64, guid);
    return text;
}

void ctl_device_label(const struct pmixfab_device *device, bool with_port, char *buf, size_t size)
{
    if (with_port)
        snprintf(buf, size, "%s:%s:%u", device->host, device->name, device->port);
    else
        snprintf(buf, size, "%s:%s", device->host, device->name);
}

const char *ctl_name_with_guid(const char *name, uint64_t guid, char buf[static CTL_SHOWN_SIZE])
{
    snprintf(buf, CTL_SHOWN_SIZE, "%.*s (0x%016" PRIx64 ")", CTL_SHOWN_SIZE - 22, name, guid);
    return buf;
}

const char *ctl_rail_name(uint32_t rail, char name[CTL_RAIL_SIZE])
{
    snprintf(name, CTL_RAIL_SIZE, "rail%" PRIu32, rail);
    return name;
}

bool ctl_wants_switch(const struct ctl *ctl, const struct pmixfab_switch *sw)
{
    char both[CTL_SHOWN_SIZE];

    ctl_name_with_guid(sw->name, sw->guid, both);
    return wants(ctl, (const char *const[]){sw->name, sw->id, both}, 3, NULL);
}

bool ctl_wants_device(const struct ctl *ctl, const struct pmixfab_device *device)
{
    char label[CTL_LABEL_SIZE], full[CTL_LABEL_SIZE], guids[3][24];

    ctl_device_label(device, false, label, sizeof label);
    ctl_device_label(device, true, full, sizeof full);
    return wants(ctl,
                 (const char *const[]){label, full, device->id, guid_text(device->node_guid, guids[0]),
                                       guid_text(device->port_guid, guids[1]),
                                       guid_text(device->system_guid, guids[2])},
                 6, device->host);
}

bool ctl_wants_name(const struct ctl *ctl, const char *name)
{
    return wants(ctl, &name, 1, name);
}

bool ctl_same_host(const char *a, const char *b)
{
    size_t n = strcspn(a, "."), m = strcspn(b, ".");

    return strcmp(a, b) == 0 || (n == m && memcmp(a, b, n) == 0 && (a[n] == '\0' || b[m] == '\0'));
}

unsigned ctl_names_of(const char *command)
{
    static const struct {
        const char *command;
        unsigned kinds;
    } known[] = {{"switches", CTL_SWITCHES},
                 {"devices", CTL_HOSTS | CTL_DEVICES},
                 {"coords", CTL_HOSTS | CTL_DEVICES},
                 {"cost", CTL_HOSTS | CTL_DEVICES},
                 {"where", CTL_HOSTS},
                 {"nodes", CTL_HOSTS},
                 {"groups", CTL_GROUPS | CTL_HOSTS | CTL_SWITCHES},
                 {"rails", CTL_RAILS},
                 {"show", CTL_HOSTS | CTL_SWITCHES | CTL_GROUPS | CTL_RAILS | CTL_PLANES},
                 {"links", CTL_HOSTS | CTL_SWITCHES},
                 {"counters", CTL_HOSTS | CTL_SWITCHES},
                 {"expect", CTL_HOSTS | CTL_SWITCHES},
                 {"forget", CTL_HOSTS | CTL_SWITCHES},
                 {"history", CTL_HOSTS | CTL_SWITCHES},
                 {"ack", CTL_HOSTS | CTL_SWITCHES}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].command, command) == 0)
            return known[i].kinds;
    return 0;
}

enum ctl_exit ctl_wanted_met(const struct ctl *ctl, const char *kind, const char *command)
{
    enum ctl_exit status = CTL_DONE;
    char hint[CTL_SUGGESTION];

    for (int i = 0; i < ctl->n_args; i++)
        if (!ctl->met[i])
            status = ctl_error("no %s %s: %s: `fabricctl %s` shows what there is%s", kind, ctl->args[i],
                               ctl_source_location(ctl), command,
                               ctl_suggest(ctl, ctl->args[i], ctl_names_of(command), hint));
    return status;
}
