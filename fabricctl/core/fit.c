/* fit.c - a table as wide as the terminal: which columns are cut, and to which width. */
#include "fabricctl/core/columns.h"

#include <libsmartcols.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define FIT_LAST   16 /* the last text is cut first, to so many characters */
#define FIT_OTHERS 10 /* then the widest of the others, to the day of a time */
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

/* Take from a text column what is too much, down to so many characters or its head; returns the new total. */
static size_t shrink(struct libscols_table *scols, size_t column, size_t *width, const size_t *head,
                     size_t least, size_t total, size_t terminal)
{
    const size_t over = total > terminal ? total - terminal : 0;
    size_t room = 0;

    least = least > head[column] ? least : head[column];
    if (is_text_column(scols, column) && width[column] > least)
        room = width[column] - least;
    room = over < room ? over : room;
    width[column] -= room;
    return total - room;
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

bool ctl_fit(struct libscols_table *scols, size_t terminal)
{
    const size_t n = scols_table_get_ncols(scols);
    size_t width[CTL_MAX_COLUMNS], head[CTL_MAX_COLUMNS], last = n, widest, total = n > 0 ? n - 1 : 0;
    bool good = true;

    for (size_t i = 0; i < n; i++) {
        head[i] = shown_width(scols_cell_get_data(scols_column_get_header(scols_table_get_column(scols, i))));
        width[i] = column_width(scols, i);
        total += width[i];
        last = is_text_column(scols, i) ? i : last;
    }
    if (total <= terminal || last == n)
        return true;
    total = shrink(scols, last, width, head, FIT_LAST, total, terminal);
    while (total > terminal && (widest = widest_text(scols, width, head, FIT_OTHERS)) < n) {
        width[widest]--;
        total--;
    }
    for (size_t i = last + 1; i-- > 0;)
        total = shrink(scols, i, width, head, FIT_LEAST, total, terminal);
    for (size_t i = 0; good && i < n; i++)
        good = cut_column(scols, i, width[i]);
    hide_columns(scols, width, last, total, terminal);
    return good;
}
