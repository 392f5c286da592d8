/*
 * source.h - where fabricctl reads: the snapshots in a run directory, or a PMIx server.
 */
#ifndef FABRICCTL_CORE_SOURCE_H
#define FABRICCTL_CORE_SOURCE_H

#include "fabricctl/core/ctl.h"

#define CTL_REASON_SIZE 600

/* Open snapshots. */
struct ctl_view {
    struct pmixfab **planes;
    size_t n;
};

/* The planes that a list command is about: that of --plane, or all, the default plane first. Tells its
 * failures. */
enum ctl_exit ctl_view_all(const struct ctl *ctl, struct ctl_view *view);

/* One plane: that of --plane, or the default one. Tells its failures. */
enum ctl_exit ctl_view_one(const struct ctl *ctl, struct ctl_view *view);

/* All planes, for `status`: nothing readable at all is CTL_DONE with none, and `reason` says why. */
enum ctl_exit ctl_view_any(const struct ctl *ctl, struct ctl_view *view, char reason[static CTL_REASON_SIZE]);

void ctl_view_close(struct ctl_view *view);

/* What is read, for messages. */
const char *ctl_source_location(const struct ctl *ctl);

/* Take the library's log lines: they explain the next failure; what was passed over is told in any case. */
void ctl_source_log(void);

/* End the PMIx connection, where there is one. */
void ctl_source_end(void);

/* ---- source_pmix.c ---- */

/* Connect as a tool; once. Tells its failures. */
enum ctl_exit ctl_pmix_connect(const char *uri);
void ctl_pmix_disconnect(void);
/* pmixfab_open_pmix() with a plane's name; NULL: the default plane. */
int ctl_pmix_open(const char *plane, struct pmixfab **out);

#endif
