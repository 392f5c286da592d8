/* suggest.c - which name may be meant by one that nothing has. */
#include "fabricctl/core/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "fabricctl/core/source.h"
#include "topo/base/nearest_words.h"

struct each {
    unsigned kinds;
    void (*fn)(const char *name, void *cbdata);
    void *cbdata;
};

static void each_of_plane(const struct each *each, const struct pmixfab *fab)
{
    struct pmixfab_plane plane;
    struct pmixfab_device device;
    struct pmixfab_switch sw;
    const char *name;
    char text[CTL_SUGGESTION];
    uint32_t first, n;

    if (pmixfab_plane(fab, &plane) != 0)
        return;
    if ((each->kinds & CTL_PLANES) != 0)
        each->fn(plane.name, each->cbdata);
    for (uint32_t i = 0; (each->kinds & CTL_HOSTS) != 0 && i < plane.n_hosts; i++)
        if (pmixfab_host(fab, i, &name, &first, &n) == 0)
            each->fn(name, each->cbdata);
    for (uint32_t i = 0; (each->kinds & (CTL_SWITCHES | CTL_RAILS)) != 0 && i < plane.n_switches; i++) {
        if (pmixfab_switch(fab, i, &sw) != 0)
            continue;
        if ((each->kinds & CTL_SWITCHES) != 0)
            each->fn(sw.name, each->cbdata);
        snprintf(text, sizeof text, "rail%u", (unsigned)sw.rail);
        if ((each->kinds & CTL_RAILS) != 0 && sw.rail != UINT32_MAX)
            each->fn(text, each->cbdata);
    }
    for (uint32_t i = 0; (each->kinds & CTL_DEVICES) != 0 && i < plane.n_devices; i++)
        if (pmixfab_device(fab, i, &device) == 0) {
            snprintf(text, sizeof text, "%s:%s", device.host, device.name);
            each->fn(text, each->cbdata);
        }
    for (uint32_t i = 0; (each->kinds & CTL_GROUPS) != 0 && i < plane.n_groups; i++)
        if (pmixfab_group_name(fab, i) != NULL)
            each->fn(pmixfab_group_name(fab, i), each->cbdata);
}

void ctl_each_name(const struct ctl *ctl, unsigned kinds, void (*fn)(const char *name, void *cbdata),
                   void *cbdata)
{
    const struct each each = {kinds, fn, cbdata};
    char reason[CTL_REASON_SIZE];
    struct ctl_view view;

    if (ctl_view_any(ctl, &view, reason) == CTL_DONE)
        for (size_t i = 0; i < view.n; i++)
            each_of_plane(&each, view.planes[i]);
    ctl_view_close(&view);
}

/* In small letters, and no 0 before a number: node1 may be meant by Node0001. */
static void plain_name(const char *name, char plain[static CTL_SUGGESTION])
{
    size_t n = 0;

    for (size_t i = 0; name[i] != '\0' && n + 1 < CTL_SUGGESTION; i++)
        if (name[i] != '0' ||
            (i > 0 && isdigit((unsigned char)name[i - 1]) && n > 0 && isdigit((unsigned char)plain[n - 1])) ||
            !isdigit((unsigned char)name[i + 1]))
            plain[n++] = (char)tolower((unsigned char)name[i]);
    plain[n] = '\0';
}

struct nearest_name {
    const char *word;
    char plain[CTL_SUGGESTION], name[CTL_SUGGESTION];
    size_t best;
    bool is_one;
};

static void on_name(const char *name, void *cbdata)
{
    struct nearest_name *nearest = cbdata;
    char plain[CTL_SUGGESTION];

    nearest->is_one |= strcmp(name, nearest->word) == 0;
    plain_name(name, plain);
    if (fab_is_nearer(nearest->plain, plain, &nearest->best))
        snprintf(nearest->name, sizeof nearest->name, "%s", name);
}

const char *ctl_suggest(const struct ctl *ctl, const char *word, unsigned kinds,
                        char text[static CTL_SUGGESTION])
{
    struct nearest_name nearest = {.word = word, .best = FAB_NEAR + 1};

    text[0] = '\0';
    plain_name(word, nearest.plain);
    ctl_each_name(ctl, kinds, on_name, &nearest);
    if (nearest.name[0] != '\0' && !nearest.is_one &&
        snprintf(text, CTL_SUGGESTION, "; did you mean %s?", nearest.name) >= CTL_SUGGESTION)
        text[0] = '\0';
    return text;
}
