/* fit.c - a table as wide as the terminal: which columns are cut, and to which width. */
#include "fabricctl/core/columns.h"

#include <libsmartcols.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define FIT_LAST   30 /* what is left of the last text first, since it is the longest */
#define FIT_OTHERS 10 /* and of the others: the day of a time */
#define FIT_LEAST  6

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

bool ctl_fit(struct libscols_table *scols, size_t terminal)
{
    const size_t n = scols_table_get_ncols(scols);
    size_t width[CTL_MAX_COLUMNS], head[CTL_MAX_COLUMNS], last = n, total = n > 0 ? n - 1 : 0;
    bool good = true;

    for (size_t i = 0; i < n; i++) {
        head[i] = shown_width(scols_cell_get_data(scols_column_get_header(scols_table_get_column(scols, i))));
        width[i] = column_width(scols, i);
        total += width[i];
        last = is_text_column(scols, i) ? i : last;
    }
    if (total <= terminal || last == n)
        return true;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = last + 1; i-- > 0 && total > terminal;) {
            const size_t wanted = pass == 1 ? FIT_LEAST : i == last ? FIT_LAST : FIT_OTHERS;
            const size_t least = wanted > head[i] ? wanted : head[i];
            const size_t over = total - terminal, room = width[i] > least ? width[i] - least : 0;
            const size_t less = is_text_column(scols, i) ? (over < room ? over : room) : 0;

            width[i] -= less;
            total -= less;
        }
    for (size_t i = 0; good && i < n; i++)
        good = cut_column(scols, i, width[i]);
    hide_columns(scols, width, last, total, terminal);
    return good;
}
