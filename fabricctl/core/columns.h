/*
 * columns.h - which columns of a table are shown, and in which order.
 */
#ifndef FABRICCTL_CORE_COLUMNS_H
#define FABRICCTL_CORE_COLUMNS_H

#include "fabricctl/core/table.h"

#define CTL_MAX_COLUMNS 64

struct ctl_shown {
    size_t n;
    size_t of[CTL_MAX_COLUMNS];     /* of what is shown: the number of the column */
    size_t at[CTL_MAX_COLUMNS];     /* of a column: where it is shown; CTL_MAX_COLUMNS: nowhere */
    char head[CTL_MAX_COLUMNS][32]; /* over it, in a text */
};

/* Those of `asked`, keys with commas between (NULL: all that the format has). False: one of them is no key;
 * told. */
bool ctl_columns_choose(const char *asked, enum ctl_format format, const struct ctl_column *columns,
                        size_t n_columns, struct ctl_shown *out);

/* Cut the spare texts of a filled table and then the widest until it is so wide. Leave columns out where that
 * is not enough. spare: of each shown column. False: no memory. */
struct libscols_table;
bool ctl_fit(struct libscols_table *scols, const bool *spare, size_t terminal);

#endif
