/* table.c - rows in three forms: JSON, CSV, and a table as wide as the terminal. */
#include <ctype.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "fabricctl/core/ctl.h"

/* ---- the choice and the order of columns ---- */

#define CTL_MAX_COLUMNS 64
struct ctl_shown {
    size_t n;
    size_t of[CTL_MAX_COLUMNS];     /* for each shown column: its number */
    size_t at[CTL_MAX_COLUMNS];     /* for each column: its shown place; CTL_MAX_COLUMNS: not shown */
    char head[CTL_MAX_COLUMNS][32]; /* heads in a text table */
};

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

/*
 * Choose the columns of `asked`, which has keys with commas between them. NULL: all columns of the format.
 * Return false if a word is not a key.
 */
static bool columns_choose(const char *asked, enum ctl_format format, const struct ctl_column *columns,
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

/* ---- a table as wide as the terminal: the columns to shorten, and their widths ---- */

#define FIT_MOST  10 /* minimum width of a text before any is cut to FIT_LEAST: the day of a time */
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

/* Cut the cells of a column to this number of characters. */
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

/* Return the widest text column that may be cut. Return the number of columns if none may be cut. */
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

/* Cut the widest column first, down to this number of characters; return the new total. */
static size_t shrink_widest(struct libscols_table *scols, size_t *width, const size_t *head, size_t least,
                            size_t total, size_t terminal)
{
    const size_t n = scols_table_get_ncols(scols);
    for (size_t widest; total > terminal && (widest = widest_text(scols, width, head, least)) < n; total--)
        width[widest]--;
    return total;
}

/*
 * Cut the spare texts of a filled table and then the widest ones until the table fits. Leave columns out if
 * that is not enough. spare: for each shown column. Return false without memory.
 */
static bool fit_table(struct libscols_table *scols, const bool *spare, size_t terminal)
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
    /* a table that is still too wide loses columns, the last one first */
    for (size_t i = scols_table_get_ncols(scols); i-- > 1 && total > terminal;)
        if (i != last) {
            scols_column_set_flags(scols_table_get_column(scols, i), SCOLS_FL_HIDDEN);
            total -= width[i] + 1;
        }
    return good;
}

/* ---- one way to write rows in three forms ---- */

struct ctl_table {
    FILE *out;
    enum ctl_format format;
    enum ctl_json json;
    const struct ctl_column *columns;
    size_t n_columns;
    size_t column; /* number of the next cell */
    size_t n_rows;
    bool no_memory;
    json_t *into;                 /* not owned */
    json_t *object;               /* the unfinished row, JSON */
    struct libscols_table *scols; /* text */
    struct libscols_line *line;   /* the unfinished row, text */
    char **cells;                 /* the unfinished row, CSV: the shown cells */
    struct ctl_shown shown;
};

/* Settings of the command line, for standard output. */
static struct {
    const char *columns;
    bool no_header, longer, refused;
    const char *none;
} layout;

void ctl_table_layout(const struct ctl *ctl, const char *none)
{
    layout.columns = ctl->columns;
    layout.no_header = ctl->no_header;
    layout.longer = ctl->longer;
    layout.none = none;
}

static bool lay_out(struct ctl_table *t)
{
    t->scols = scols_new_table();
    if (t->scols == NULL)
        return false;
    scols_table_set_stream(t->scols, t->out);
    scols_table_set_termforce(t->scols, SCOLS_TERMFORCE_NEVER); /* fit_table() cuts instead */
    scols_table_enable_noheadings(t->scols, layout.no_header);
    for (size_t i = 0; i < t->shown.n; i++)
        if (scols_table_new_column(t->scols, t->shown.head[i], 0,
                                   t->columns[t->shown.of[i]].how == true ? SCOLS_FL_RIGHT : 0) == NULL)
            return false;
    return true;
}

static void free_table(struct ctl_table *t)
{
    json_decref(t->object);
    if (t->scols != NULL)
        scols_unref_table(t->scols);
    for (size_t i = 0; t->cells != NULL && i < t->shown.n; i++)
        free(t->cells[i]);
    free(t->cells);
    free(t);
}

struct ctl_table *ctl_table_open(FILE *out, enum ctl_format format, enum ctl_json json, json_t *into,
                                 const struct ctl_column *columns, size_t n_columns)
{
    struct ctl_table *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->out = out;
    t->format = into != NULL ? CTL_JSON : format;
    t->json = json;
    t->into = into;
    t->columns = columns;
    t->n_columns = n_columns;
    layout.refused = !columns_choose(layout.columns, t->format, columns, n_columns, &t->shown);
    if (t->format == CTL_CSV)
        t->cells = calloc(t->shown.n + 1, sizeof *t->cells);
    if (layout.refused || (t->format == CTL_TEXT && !lay_out(t)) ||
        (t->format == CTL_CSV && t->cells == NULL)) {
        free_table(t);
        return NULL;
    }
    for (size_t i = 0; t->format == CTL_CSV && !layout.no_header && i < t->shown.n; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", columns[t->shown.of[i]].key);
    if (t->format == CTL_CSV && !layout.no_header)
        putc('\n', out);
    return t;
}

/* Add a cell as text, for people and for CSV. The string must be cleaned or harmless. */
static void put_string(struct ctl_table *t, const char *text, bool absent)
{
    size_t at = t->shown.at[t->column];
    if (at < t->shown.n && t->format == CTL_CSV) {
        t->cells[at] = absent ? NULL : strdup(text);
        t->no_memory |= !absent && t->cells[at] == NULL;
    } else if (at < t->shown.n) {
        const char *shown = absent || *text == '\0' ? "-" : text;
        if (t->line == NULL)
            t->line = scols_table_new_line(t->scols, NULL);
        if (t->line == NULL || scols_line_set_data(t->line, at, shown) != 0)
            t->no_memory = true;
    }
    t->column++;
}

/* Add a cell as JSON; takes the reference. */
static void put_json(struct ctl_table *t, json_t *value)
{
    if (t->object == NULL)
        t->object = json_object();
    if (t->shown.at[t->column] == CTL_MAX_COLUMNS)
        json_decref(value);
    else if (json_object_set_new_nocheck(t->object, t->columns[t->column].key, value) != 0)
        t->no_memory = true;
    t->column++;
}

static bool table_is_full(const struct ctl_table *t)
{
    return t == NULL || t->no_memory || t->column >= t->n_columns;
}

/* Add a cell as JSON (takes the reference) and as text. */
static void put_plain(struct ctl_table *t, json_t *value, const char *text, bool absent)
{
    if (!table_is_full(t) && t->format == CTL_JSON) {
        put_json(t, value);
        return;
    }
    json_decref(value);
    if (!table_is_full(t))
        put_string(t, text, absent);
}

void ctl_put_text(struct ctl_table *table, const char *text)
{
    char *clean;
    if (table_is_full(table))
        return;
    if (table->format == CTL_JSON) {
        put_json(table, ctl_json_text(text));
        return;
    }
    clean = ctl_clean_copy(text == NULL ? "" : text);
    if (clean != NULL && table->format == CTL_TEXT && !layout.longer)
        ctl_cut_to_seconds(clean);
    if (clean == NULL)
        table->no_memory = true;
    else
        put_string(table, clean, text == NULL);
    free(clean);
}

void ctl_put_number(struct ctl_table *table, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    put_plain(table, json_integer(number), text, false);
}

void ctl_put_bool(struct ctl_table *table, bool value)
{
    bool csv = table != NULL && table->format == CTL_CSV;
    put_plain(table, json_boolean(value), value ? (csv ? "true" : "yes") : csv ? "false" : "no", false);
}

void ctl_put_rate(struct ctl_table *table, uint64_t mbps)
{
    char text[32];
    snprintf(text, sizeof text, "%.10g", (double)mbps / 1000);
    put_plain(table, ctl_json_rate(mbps), text, mbps == 0);
}

static void put_seconds(struct ctl_table *table, double seconds)
{
    char text[32];
    /* to the millisecond, in JSON and CSV alike */
    snprintf(text, sizeof text, "%.3f", seconds);
    seconds = strtod(text, NULL);
    snprintf(text, sizeof text, "%.10g", seconds);
    put_plain(table, json_real(seconds), text, false);
}

void ctl_put_numbers(struct ctl_table *table, const uint32_t *numbers, size_t n)
{
    char text[PMIXFAB_MAX_DIMS * 12 + 1];
    size_t used = 0;
    if (table_is_full(table))
        return;
    if (table->format == CTL_JSON) {
        json_t *array = json_array();
        for (size_t i = 0; i < n; i++)
            if (json_array_append_new(array, json_integer(numbers[i])) != 0)
                table->no_memory = true;
        put_json(table, array);
        return;
    }
    text[0] = '\0';
    for (size_t i = 0; i < n && used + 12 < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRIu32,
                                 i == 0                     ? ""
                                 : table->format == CTL_CSV ? ";"
                                                            : ",",
                                 numbers[i]);
    put_string(table, text, false);
}

void ctl_put_hosts(struct ctl_table *table, const char *const *names, size_t n)
{
    char *text;
    if (table_is_full(table))
        return;
    if (table->format == CTL_JSON) {
        json_t *array = json_array();
        for (size_t i = 0; i < n; i++)
            if (json_array_append_new(array, ctl_json_text(names[i])) != 0)
                table->no_memory = true;
        put_json(table, array);
        return;
    }
    text = ctl_join_names(names, n, table->format == CTL_CSV ? ";" : NULL);
    if (text == NULL) {
        table->no_memory = true;
        return;
    }
    ctl_clean(text);
    put_string(table, text, false);
    free(text);
}

void ctl_put_json(struct ctl_table *table, json_t *value)
{
    if (table_is_full(table) || value == NULL) {
        if (table != NULL)
            table->no_memory = true;
        json_decref(value);
        return;
    }
    put_json(table, value);
}

void ctl_put_list(struct ctl_table *table, const json_t *strings)
{
    size_t n = json_array_size(strings), i;
    const char **names;
    json_t *one;
    char *text;
    if (table_is_full(table))
        return;
    names = calloc(n + 1, sizeof *names);
    if (names == NULL) {
        table->no_memory = true;
        return;
    }
    json_array_foreach(strings, i, one) names[i] = json_string_length(one) > 0 ? json_string_value(one) : "?";
    if (table->format != CTL_TEXT) {
        ctl_put_hosts(table, names, n);
    } else if ((text = ctl_join_names(names, n, ",")) == NULL) {
        table->no_memory = true;
    } else {
        ctl_put_text(table, text);
        free(text);
    }
    free(names);
}

/* Put the members in the order of --columns. */
static void order_members(struct ctl_table *t)
{
    json_t *ordered = json_object();
    for (size_t i = 0; i < t->shown.n; i++) {
        const char *key = t->columns[t->shown.of[i]].key;
        if (json_object_set_nocheck(ordered, key, json_object_get(t->object, key)) != 0)
            t->no_memory = true;
    }
    json_decref(t->object);
    t->object = ordered;
}

static void end_csv_row(struct ctl_table *t)
{
    for (size_t i = 0; i < t->shown.n; i++) {
        if (i > 0)
            putc(',', t->out);
        if (t->cells[i] != NULL)
            ctl_csv_field(t->out, t->cells[i]);
        free(t->cells[i]);
        t->cells[i] = NULL;
    }
    putc('\n', t->out);
}

void ctl_put_null(struct ctl_table *table)
{
    ctl_put_text(table, NULL);
}

void ctl_put_member(struct ctl_table *table, const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    if (json_is_array(value))
        ctl_put_list(table, value);
    else if (json_is_integer(value))
        ctl_put_number(table, json_integer_value(value));
    else if (json_is_real(value))
        put_seconds(table, json_real_value(value));
    else
        ctl_put_text(table, json_string_value(value));
}

static void end_json_row(struct ctl_table *t)
{
    if (layout.columns != NULL)
        order_members(t);
    if (t->into != NULL) {
        if (json_array_append(t->into, t->object) != 0)
            t->no_memory = true;
    } else {
        if (t->json == CTL_JSON_ARRAY)
            fputs(t->n_rows == 0 ? "[\n" : ",\n", t->out);
        if (json_dumpf(t->object, t->out, CTL_JSON_FLAGS) != 0 && !ferror(t->out))
            t->no_memory = true;
        if (t->json == CTL_JSON_LINES)
            putc('\n', t->out);
    }
    json_decref(t->object);
    t->object = NULL;
}

bool ctl_table_row(struct ctl_table *table)
{
    if (table == NULL)
        return false;
    while (!table_is_full(table))
        ctl_put_null(table);
    if (table->no_memory)
        return false;
    if (table->format == CTL_JSON)
        end_json_row(table);
    else if (table->format == CTL_CSV)
        end_csv_row(table);
    if (table->json == CTL_JSON_LINES)
        fflush(table->out);
    table->line = NULL;
    table->column = 0;
    table->n_rows++;
    return !table->no_memory && (table->into != NULL || !ferror(table->out));
}

bool ctl_put_members(struct ctl_table *table, const json_t *row)
{
    for (size_t k = 0; table != NULL && k < table->n_columns; k++)
        ctl_put_member(table, row, table->columns[k].key);
    return ctl_table_row(table);
}

static bool table_fit(const struct ctl_table *table)
{
    bool spare[CTL_MAX_COLUMNS];
    for (size_t i = 0; i < table->shown.n; i++)
        spare[i] = table->columns[table->shown.of[i]].how == CTL_SPARE;
    return fit_table(table->scols, spare, scols_table_get_termwidth(table->scols));
}

enum ctl_exit ctl_table_close(struct ctl_table *table)
{
    bool no_memory;
    if (table == NULL)
        return layout.refused ? CTL_USAGE : ctl_nomem();
    if (table->format == CTL_JSON && table->json == CTL_JSON_ARRAY && table->into == NULL)
        fputs(table->n_rows == 0 ? "[]\n" : "\n]\n", table->out);
    if (table->scols != NULL && table->n_rows > 0 && !layout.longer && isatty(STDOUT_FILENO) &&
        !table_fit(table))
        table->no_memory = true;
    if (table->scols != NULL && table->n_rows > 0 && scols_print_table(table->scols) != 0 &&
        !ferror(table->out))
        table->no_memory = true;
    if (table->scols != NULL && table->n_rows == 0 && table->out == stdout && layout.none != NULL &&
        !layout.no_header)
        puts(layout.none);
    no_memory = table->no_memory;
    free_table(table);
    return no_memory ? ctl_nomem() : CTL_DONE;
}

/* ---- cells and rows from other values ---- */

void ctl_put_guid(struct ctl_table *table, uint64_t guid)
{
    char text[24];
    snprintf(text, sizeof text, "0x%016" PRIx64, guid);
    ctl_put_text(table, guid == 0 ? NULL : text);
}

void ctl_put_index(struct ctl_table *table, uint32_t number)
{
    if (number == UINT32_MAX)
        ctl_put_null(table);
    else
        ctl_put_number(table, number);
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

enum ctl_exit ctl_row_print(const struct ctl *ctl, const struct ctl_column *columns, size_t n_columns,
                            json_t *row)
{
    struct ctl_table *table =
        row != NULL ? ctl_table_open(stdout, ctl->format, CTL_JSON_LINES, NULL, columns, n_columns) : NULL;
    ctl_put_members(table, row);
    json_decref(row);
    return ctl_table_close(table);
}
