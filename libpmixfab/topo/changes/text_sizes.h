/*
 * text_sizes.h - shared by the files of diff only.
 */
#ifndef FAB_TOPO_CHANGES_TEXT_SIZES_H
#define FAB_TOPO_CHANGES_TEXT_SIZES_H

#include "topo/changes/diff.h"
#include "topo/model/inventory_text.h"

/* Texts that fit any change. */
#define DIFF_VALUE_TEXT 272
#define DIFF_WHY_TEXT   400
#define DIFF_LOST_TEXT  96

/* A comparison on its way. */
struct diff_walk {
    const struct fab_inventory *before, *after;
    struct fab_diff *diff;
    const char **hosts; /* names of hosts that may have come or gone */
    uint32_t n_hosts, cap_hosts;
    int rc; /* the first failure; nothing is added after it */
};

#define DIFF_GUID_TEXT 24
void diff_guid_text(uint64_t guid, char text[DIFF_GUID_TEXT]);

/* Append a change. `before` and `after` are cleaned here, `what` has been. */
void diff_add(struct diff_walk *w, enum fab_change_kind kind, uint64_t guid, uint32_t port, const char *what,
              const char *before, const char *after);

/* As diff_add(), with everything that `like` says; its `before`, `after` and `why` are cleaned here, the
 * other texts have been. Its texts are copied. */
void diff_put(struct diff_walk *w, const struct fab_change *like);

/* A number that is kept but has no kind of its own, where it differs. digits: hexadecimal ones, 0: decimal.
 */
void diff_number(struct diff_walk *w, const char *of, uint64_t guid, uint32_t port, const char *word,
                 uint64_t before, uint64_t after, int digits);

/* A LID, where it differs. */
void diff_lid(struct diff_walk *w, const char *what, uint64_t guid, uint32_t port, unsigned before,
              unsigned after);

/* Second half of the walk: ports, devices, cables. */
void diff_ports(struct diff_walk *w);

/* A host that may have come or gone with a device. */
void diff_note_host(struct diff_walk *w, const char *name);
/* Which of the noted hosts have. */
void diff_hosts(struct diff_walk *w);

#endif
