/* columns.c - which columns of a table are shown. */
#include "fabricctl/core/columns.h"

#include <ctype.h>
#include <string.h>

static void show_column(struct ctl_shown *shown, const struct ctl_column *columns, size_t column)
{
    char *head = shown->head[shown->n];

    snprintf(head, sizeof shown->head[0], "%s",
             columns[column].head != NULL ? columns[column].head : columns[column].key);
    for (char *c = head; *c != '\0' && columns[column].head == NULL; c++)
        *c = *c == '_' ? '-' : (char)toupper((unsigned char)*c);
    shown->of[shown->n] = column;
    shown->at[column] = shown->n++;
}

static bool refuse_column(const char *key, int len, const struct ctl_column *columns, size_t n_columns)
{
    char list[1024] = "";
    size_t used = 0;

    for (size_t i = 0; i < n_columns && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", columns[i].key);
    ctl_usage("no such column: %.*s: there are %s", len, key, list);
    return false;
}

bool ctl_columns_choose(const char *asked, enum ctl_format format, const struct ctl_column *columns,
                        size_t n_columns, struct ctl_shown *out)
{
    *out = (struct ctl_shown){0};
    for (size_t i = 0; i < CTL_MAX_COLUMNS; i++)
        out->at[i] = CTL_MAX_COLUMNS;
    for (size_t i = 0; asked == NULL && i < n_columns; i++)
        if (format != CTL_TEXT || columns[i].head != NULL)
            show_column(out, columns, i);
    while (asked != NULL) {
        size_t len = strcspn(asked, ","), i = 0;

        while (i < n_columns && (strncmp(columns[i].key, asked, len) != 0 || columns[i].key[len] != '\0'))
            i++;
        if (i == n_columns)
            return refuse_column(asked, (int)len, columns, n_columns);
        if (out->at[i] == CTL_MAX_COLUMNS)
            show_column(out, columns, i);
        asked = asked[len] == ',' ? asked + len + 1 : NULL;
    }
    return true;
}
