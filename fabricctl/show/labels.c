/* labels.c - names that several switches or devices have, and what is shown for them. */
#include "fabricctl/show/labels.h"

#include <jansson.h>
#include <string.h>

/* A name's value is the GUID of the first that has it, or null once another one has it, too. */
static void labels_note(json_t *names, json_t *shared, const char *name, uint64_t guid)
{
    const json_t *first = json_object_get(names, name);

    if (first == NULL)
        json_object_set_new(names, name, json_integer((json_int_t)guid));
    else if (json_integer_value(first) != (json_int_t)guid)
        json_object_set_new(shared, name, json_true());
}

struct json_t *ctl_shared_names(const struct ctl_view *view)
{
    json_t *names = json_object(), *shared = json_object();
    char label[CTL_LABEL_SIZE];

    for (size_t i = 0; i < view->n; i++) {
        struct pmixfab_switch sw;
        struct pmixfab_device device;

        for (uint32_t s = 0; pmixfab_switch(view->planes[i], s, &sw) == 0; s++)
            labels_note(names, shared, sw.name, sw.guid);
        for (uint32_t d = 0; pmixfab_device(view->planes[i], d, &device) == 0; d++) {
            ctl_device_label(&device, false, label, sizeof label);
            labels_note(names, shared, label, device.node_guid);
        }
    }
    json_decref(names);
    return shared;
}

const char *ctl_name_shown(const struct json_t *shared, const char *name, uint64_t guid,
                           char buf[static CTL_SHOWN_SIZE])
{
    return json_object_get(shared, name) == NULL ? name : ctl_name_with_guid(name, guid, buf);
}

bool ctl_group_leaf(const struct pmixfab *fab, uint32_t g, struct pmixfab_switch *sw)
{
    const char *name = pmixfab_group_name(fab, g);
    uint32_t index;

    return name != NULL && pmixfab_group_switch(fab, g, &index) == 0 && index != UINT32_MAX &&
           pmixfab_switch(fab, index, sw) == 0 && strcmp(sw->name, name) == 0;
}

const char *ctl_group_shown(const struct json_t *shared, const struct pmixfab *fab, uint32_t g,
                            char buf[static CTL_SHOWN_SIZE])
{
    struct pmixfab_switch sw;

    return ctl_group_leaf(fab, g, &sw) ? ctl_name_shown(shared, sw.name, sw.guid, buf)
                                       : pmixfab_group_name(fab, g);
}
