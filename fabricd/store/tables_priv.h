/*
 * tables_priv.h - what the tables share. A family of them has a file each; store_publish.c makes one
 * transaction of them.
 */
#ifndef FABRICD_STORE_TABLES_PRIV_H
#define FABRICD_STORE_TABLES_PRIV_H

#include "fabricd/store/handle.h"
#include "fabricd/store/store_tables.h"

/* ---- the tables: each prepares its own statements ---- */

int store_inventory_prepare(struct store *store, struct fab_err *err);
int store_rows_prepare(struct store *store, struct fab_err *err);
int store_planes_prepare(struct store *store, struct fab_err *err);
int store_history_prepare(struct store *store, struct fab_err *err);
int store_history_digest_prepare(struct store *store, struct fab_err *err);
int store_reports_prepare(struct store *store, struct fab_err *err);
int store_trim_prepare(struct store *store, struct fab_err *err);

/* The numbers among the columns of a node and of a port, which are called as the members are; and all
 * columns, the others first. What is added here is written, compared and read. */
// clang-format off
#define STORE_NODE_NUMBERS(X) \
    X(system_guid) X(kind) X(unnamed) X(vendor_id) X(device_id) X(num_ports) X(enhanced) X(lid) X(lmc) \
    X(chassis) X(slot_type) X(slot) X(chip) X(missing)
#define STORE_PORT_NUMBERS(X) X(lid) X(lmc) X(state) X(width) X(speed) X(subnet) X(missing)
// clang-format on
#define STORE_NAME(number) ", " #number
#define STORE_NODE_COLUMNS "guid, description, host, name" STORE_NODE_NUMBERS(STORE_NAME)
#define STORE_PORT_COLUMNS "node, num, guid" STORE_PORT_NUMBERS(STORE_NAME)

/* ---- requires that we are in a transaction ---- */

/* Bring the tables from before to after. PMIXFAB_ERR_CONFLICT where they do not hold `before`. */
int store_write_inventory(struct store *store, const struct fab_inventory *before,
                          const struct fab_inventory *after, struct fab_err *err);
int store_write_plane(struct store *store, const struct store_plane *plane, struct fab_err *err);
int store_write_generation(struct store *store, const struct store_publication *publication,
                           struct fab_err *err);
int store_write_history_digest(struct store *store, uint64_t generation,
                               struct fab_err *err); /* the last of it */
/* So many changes more. */
int store_count_changes(struct store *store, uint32_t n, struct fab_err *err);
int store_write_announced(struct store *store, const struct store_report *announced, struct fab_err *err);

/* The digest of the stored inventory; *found is false where none was stored. */
int store_read_digest(struct store *store, uint64_t *digest, bool *found, struct fab_err *err);

/* A number that differs when a finished inventory says anything else (lines aside); of a row. */
uint64_t store_inventory_digest(const struct fab_inventory *inv);
uint64_t store_plane_digest(const struct store_plane *plane);
uint64_t store_report_checksum(const struct store_report *report);
uint64_t store_announced_checksum(const struct store_report *announced); /* host and digest */

#endif
