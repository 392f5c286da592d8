/*
 * list.h - what several commands say about a plane.
 */
#ifndef FABRICCTL_SHOW_LIST_H
#define FABRICCTL_SHOW_LIST_H

#include "fabricctl/core/source.h"
#include "fabricctl/core/table.h"

/* Writes one plane's rows; false when that is impossible or of no use any more. */
typedef bool (*ctl_list_fn)(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                            const struct pmixfab_plane *plane);

/* A list command: the rows of every plane that it is about, on standard output. */
enum ctl_exit ctl_list_all(const struct ctl *ctl, const struct ctl_column *columns, size_t n_columns,
                           ctl_list_fn list);

/* The same of a command that takes names: a name that nothing has is told as no `kind`, and is a failure. */
enum ctl_exit ctl_list_wanted(const struct ctl *ctl, const char *kind, const char *command,
                              const struct ctl_column *columns, size_t n_columns, ctl_list_fn list);

/* Fill an open table with the rows of a view's planes, and close it. */
enum ctl_exit ctl_list_view(struct ctl_table *table, const struct ctl *ctl, const struct ctl_view *view,
                            ctl_list_fn list);

/* The tables of commands; with `into` as JSON rows appended to it. Devices are without their facts. */
enum ctl_exit ctl_planes_table(const struct ctl *ctl, const struct ctl_view *view, json_t *into);
enum ctl_exit ctl_devices_table(const struct ctl *ctl, const struct ctl_view *view, json_t *into);
enum ctl_exit ctl_switches_table(const struct ctl *ctl, const struct ctl_view *view, json_t *into);
enum ctl_exit ctl_links_table(const struct ctl *ctl, const struct ctl_view *view, json_t *into);
enum ctl_exit ctl_groups_table(const struct ctl *ctl, const struct ctl_view *view, json_t *into);
enum ctl_exit ctl_rails_table(const struct ctl *ctl, const struct ctl_view *view, json_t *into);

/* The host that is meant, as it is called: with or without its domain, as for `forget` and `refresh`. NULL:
 * none, or it could be several; that is told. */
const char *ctl_find_host(const struct ctl *ctl, const struct ctl_view *view, const char *asked);

/* A number of the library's, null where it is UINT32_MAX. */
void ctl_list_number(struct ctl_table *table, uint32_t number);

#endif
