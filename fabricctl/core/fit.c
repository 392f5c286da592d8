/* fit.c - a table as wide as the terminal: which columns are cut, and to which width. */
#include "fabricctl/core/columns.h"

#include <libsmartcols.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define FIT_MOST  10 /* what is left of a text before any is cut to FIT_LEAST: the day of a time */
#define FIT_LEAST 6

static size_t shown_width(const char *text)
{
    const size_t n = text == NULL ? 0 : mbstowcs(NULL, text, 0);

    return n == (size_t)-1 ? strlen(text) : n;
}

static size_t column_width(struct libscols_table *scols, size_t column)
{
    size_t most =
        shown_width(scols_cell_get_data(scols_column_get_header(scols_table_get_column(scols, column))));

    for (size_t i = 0; i < scols_table_get_nlines(scols); i++) {
        const size_t width =
            shown_width(scols_cell_get_data(scols_line_get_cell(scols_table_get_line(scols, i), column)));

        most = width > most ? width : most;
    }
    return most;
}

static bool is_text_column(struct libscols_table *scols, size_t column)
{
    return !scols_column_is_right(scols_table_get_column(scols, column));
}

/* Cut the cells of a column to so many characters. */
static bool cut_column(struct libscols_table *scols, size_t column, size_t width)
{
    for (size_t i = 0; i < scols_table_get_nlines(scols); i++) {
        struct libscols_cell *cell = scols_line_get_cell(scols_table_get_line(scols, i), column);
        const char *text = scols_cell_get_data(cell), *end = text;
        mbstate_t state = {0};
        char *cut;
        int rc;

        if (shown_width(text) <= width)
            continue;
        for (size_t n = 0; n < width; n++) {
            const size_t bytes = mbrlen(end, MB_LEN_MAX, &state);

            end += bytes >= (size_t)-2 ? 1 : bytes;
        }
        cut = strndup(text, (size_t)(end - text));
        rc = cut == NULL ? -1 : scols_cell_set_data(cell, cut);
        free(cut);
        if (rc != 0)
            return false;
    }
    return true;
}

/* What is too wide even so has fewer columns, the last one first. */
static void hide_columns(struct libscols_table *scols, const size_t *width, size_t last, size_t total,
                         size_t terminal)
{
    for (size_t i = scols_table_get_ncols(scols); i-- > 1 && total > terminal;)
        if (i != last) {
            scols_column_set_flags(scols_table_get_column(scols, i), SCOLS_FL_HIDDEN);
            total -= width[i] + 1;
        }
}

/* The widest text column that may be cut; the number of columns: none may be. */
static size_t widest_text(struct libscols_table *scols, const size_t *width, const size_t *head, size_t least)
{
    const size_t n = scols_table_get_ncols(scols);
    size_t widest = n;

    for (size_t i = 0; i < n; i++)
        if (is_text_column(scols, i) && width[i] > least && width[i] > head[i] &&
            (widest == n || width[i] >= width[widest]))
            widest = i;
    return widest;
}

/* Cut the widest first, down to so many characters; returns the new total. */
static size_t shrink_widest(struct libscols_table *scols, size_t *width, const size_t *head, size_t least,
                            size_t total, size_t terminal)
{
    const size_t n = scols_table_get_ncols(scols);

    for (size_t widest; total > terminal && (widest = widest_text(scols, width, head, least)) < n; total--)
        width[widest]--;
    return total;
}

bool ctl_fit(struct libscols_table *scols, const bool *spare, size_t terminal)
{
    const size_t n = scols_table_get_ncols(scols);
    size_t width[CTL_MAX_COLUMNS], head[CTL_MAX_COLUMNS], last = n, total = n > 0 ? n - 1 : 0;
    bool good = true;

    for (size_t i = 0; i < n; i++) {
        head[i] = shown_width(scols_cell_get_data(scols_column_get_header(scols_table_get_column(scols, i))));
        width[i] = column_width(scols, i);
        total += width[i];
        last = is_text_column(scols, i) && (last == n || !spare[i]) ? i : last;
    }
    if (total <= terminal || last == n)
        return true;
    for (size_t i = 0; i < n; i++)
        while (spare[i] && total > terminal && width[i] > FIT_MOST && width[i] > head[i]) {
            width[i]--;
            total--;
        }
    total = shrink_widest(scols, width, head, FIT_MOST, total, terminal);
    total = shrink_widest(scols, width, head, FIT_LEAST, total, terminal);
    for (size_t i = 0; good && i < n; i++)
        good = cut_column(scols, i, width[i]);
    hide_columns(scols, width, last, total, terminal);
    return good;
}
