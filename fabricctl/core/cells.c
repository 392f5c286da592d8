/* cells.c - cells and rows that are made of others. */
#include <inttypes.h>

#include "fabricctl/core/ctl_text.h"
#include "fabricctl/core/table.h"

void ctl_put_guid(struct ctl_table *table, uint64_t guid)
{
    char text[24];

    snprintf(text, sizeof text, "0x%016" PRIx64, guid);
    ctl_put_text(table, guid == 0 ? NULL : text);
}

void ctl_put_time(struct ctl_table *table, int64_t microseconds)
{
    char text[CTL_TIME_SIZE];

    ctl_put_text(table, ctl_time(microseconds, text));
}

enum ctl_exit ctl_rows_table(const struct ctl *ctl, const struct ctl_column *columns, size_t n_columns,
                             const json_t *rows, json_t *into)
{
    struct ctl_table *table = ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, into, columns, n_columns);
    bool going = table != NULL;

    for (size_t i = 0; going && i < json_array_size(rows); i++)
        going = ctl_put_members(table, json_array_get(rows, i));
    return ctl_table_close(table);
}
