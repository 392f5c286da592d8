/*
 * labels.h - what people are shown for a switch or a device: its name, and its GUID where others have that
 * name.
 */
#ifndef FABRICCTL_SHOW_LABELS_H
#define FABRICCTL_SHOW_LABELS_H

#include "fabricctl/core/source.h"
#include "fabricctl/show/wanted.h"

struct json_t;

/* The names that several switches or devices ("host:device") of these planes have; json_decref() it. NULL
 * without memory. */
struct json_t *ctl_shared_names(const struct ctl_view *view);

/* The name, with " (0x...)" behind it where it is one of `shared` (NULL: none is). A name that is longer than
 * the buffer is cut, the GUID is not. */
const char *ctl_name_shown(const struct json_t *shared, const char *name, uint64_t guid,
                           char buf[static CTL_SHOWN_SIZE]);

/* The leaf that a group is named after; false: it has its name from elsewhere. */
bool ctl_group_leaf(const struct pmixfab *fab, uint32_t g, struct pmixfab_switch *sw);

/* A group's name, with the GUID of such a leaf where its name is one of `shared`. */
const char *ctl_group_shown(const struct json_t *shared, const struct pmixfab *fab, uint32_t g,
                            char buf[static CTL_SHOWN_SIZE]);

#endif
