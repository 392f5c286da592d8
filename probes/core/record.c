/* record.c - read and write recorded machines. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/probe.h"
#include "probes/core/record.h"
#include "topo/base/text.h"

/* ---- reading recorded machines ---- */

struct record {
    const char *name; /* of the file */
    struct fab_report *report;
    struct fab_err *err;
    size_t number; /* the present item, from 1 */
    bool wanted;   /* it is of the requested source */
    uint32_t item; /* then its index in the report */
};

/* Report a failure at the present item. `key` (may be NULL) comes from the file. */
static int item_fail(const struct record *r, int code, const char *key, const char *reason)
{
    char clean[64] = "";
    if (key != NULL)
        fab_text_clean(clean, sizeof(clean), key, strlen(key), "\"");
    return fab_fail(r->err, code, "%s: item %zu: %s%s%s%s", r->name, r->number, key != NULL ? "\"" : "",
                    clean, key != NULL ? "\": " : "", reason);
}

static int read_fact(const struct record *r, const char *key, enum fab_fact kind, const json_t *value,
                     bool estimate)
{
    struct fab_err why = {{0}};
    if (!json_is_string(value))
        return item_fail(r, PMIXFAB_ERR_SYNTAX, key, "is neither a string nor an array of strings");
    int rc = fab_fact_check(kind, json_string_value(value), &why);
    if (rc != PMIXFAB_OK)
        return item_fail(r, rc, key, why.text);
    if (!r->wanted)
        return PMIXFAB_OK;
    rc = (estimate ? fab_report_estimate : fab_report_fact)(r->report, r->item, kind,
                                                            json_string_value(value));
    return rc == PMIXFAB_OK ? rc : item_fail(r, rc, key, pmixfab_strerror(rc));
}

static int read_facts(const struct record *r, const char *key, const json_t *value, bool estimate)
{
    enum fab_fact kind = fab_fact_parse(key);
    int rc = PMIXFAB_OK;
    if (kind == 0)
        return item_fail(r, PMIXFAB_ERR_SYNTAX, key, "is not the name of a fact");
    if (!json_is_array(value))
        return read_fact(r, key, kind, value, estimate);
    if (!fab_fact_many(kind))
        return item_fail(r, PMIXFAB_ERR_SYNTAX, key, "must be a single text, not an array");
    for (size_t i = 0; i < json_array_size(value) && rc == PMIXFAB_OK; i++)
        rc = read_fact(r, key, kind, json_array_get(value, i), estimate);
    return rc;
}

static int read_members(const struct record *r, json_t *object, bool estimates)
{
    const char *key;
    json_t *value;
    int rc = PMIXFAB_OK;
    json_object_foreach(object, key, value)
    {
        if (estimates || (strcmp(key, "source") != 0 && strcmp(key, "estimates") != 0))
            rc = read_facts(r, key, value, estimates);
        else if (strcmp(key, "estimates") == 0)
            rc = json_is_object(value) ? read_members(r, value, true)
                                       : item_fail(r, PMIXFAB_ERR_SYNTAX, key, "is not an object");
        if (rc != PMIXFAB_OK)
            return rc;
    }
    return rc;
}

static int read_item(struct record *r, json_t *item, enum fab_source source)
{
    const char *from = json_string_value(json_object_get(item, "source"));
    enum fab_source has = from == NULL ? FAB_SOURCES : fab_source_parse(from);
    if (has == FAB_SOURCES || has == FAB_FROM_SUBNET)
        return item_fail(r, PMIXFAB_ERR_SYNTAX, "source", "is missing, or is not a local probe");
    r->wanted = has == source;
    int rc = r->wanted ? fab_report_item(r->report, has, &r->item) : PMIXFAB_OK;
    if (rc != PMIXFAB_OK)
        return item_fail(r, rc, NULL, pmixfab_strerror(rc));
    return read_members(r, item, false);
}

static int read_host(struct record *r, const json_t *host)
{
    struct fab_report none;
    struct fab_err why = {{0}};
    if (!json_is_string(host))
        return fab_fail(r->err, PMIXFAB_ERR_SYNTAX, "%s: \"host\" is missing or not a string", r->name);
    fab_report_init(&none);
    int rc = fab_report_host(r->report->host[0] == '\0' ? r->report : &none, json_string_value(host), &why);
    fab_report_destroy(&none);
    return rc == PMIXFAB_OK ? rc : fab_fail(r->err, rc, "%s: %s", r->name, why.text);
}

static int read_record(struct record *r, json_t *root, enum fab_source source)
{
    const char *key;
    json_t *value;
    const json_t *items = json_object_get(root, "items");
    if (!json_is_object(root) || !json_is_array(items))
        return fab_fail(
            r->err, PMIXFAB_ERR_SYNTAX,
            "%s: not a recorded machine: an object with \"host\" and the array \"items\" is expected",
            r->name);
    json_object_foreach(root, key, value)
    {
        char clean[64];
        if (strcmp(key, "host") == 0 || strcmp(key, "items") == 0)
            continue;
        fab_text_clean(clean, sizeof(clean), key, strlen(key), "\"");
        return fab_fail(r->err, PMIXFAB_ERR_SYNTAX, "%s: \"%s\" is not a part of a recorded machine", r->name,
                        clean);
    }
    int rc = read_host(r, json_object_get(root, "host"));
    uint32_t before = r->report->n_items;
    for (size_t i = 0; i < json_array_size(items) && rc == PMIXFAB_OK; i++) {
        r->number = i + 1;
        json_t *item = json_array_get(items, i);
        rc = json_is_object(item) ? read_item(r, item, source)
                                  : item_fail(r, PMIXFAB_ERR_SYNTAX, NULL, "is not an object");
    }
    if (rc == PMIXFAB_OK && r->report->n_items == before)
        rc = fab_fail(r->err, PMIXFAB_ERR_UNSUPPORTED, "%s: the recorded machine has no items of %s", r->name,
                      fab_source_name(source));
    return rc;
}

static int too_large(const char *name, struct fab_err *err)
{
    return fab_fail(err, PMIXFAB_ERR_RANGE, "%s: larger than any recorded machine (%u MiB)", name,
                    RECORD_MAX_SIZE >> 20);
}

int record_parse(const char *text, size_t size, const char *name, enum fab_source source,
                 struct fab_report *report, struct fab_err *err)
{
    json_error_t at;
    struct record r = {.name = name, .report = report, .err = err};
    if (size > RECORD_MAX_SIZE)
        return too_large(name, err);
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &at);
    if (root == NULL)
        return json_error_code(&at) == json_error_out_of_memory
                   ? fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: out of memory", name)
                   : fab_fail(err, PMIXFAB_ERR_SYNTAX, "%s:%d:%d: %s", name, at.line, at.column, at.text);
    int rc = read_record(&r, root, source);
    json_decref(root);
    return rc;
}

int record_read(FILE *file, size_t limit, char **bytes, size_t *size)
{
    char block[65536];
    int why = 0;
    *bytes = NULL;
    *size = 0;
    FILE *out = open_memstream(bytes, size);
    if (out == NULL)
        why = ENOMEM;
    for (size_t n = 1, total = 0; why == 0 && n > 0; total += n) {
        n = fread(block, 1, sizeof(block), file);
        if (ferror(file))
            why = errno;
        else if (total + n > limit)
            why = EFBIG;
        else if (fwrite(block, 1, n, out) != n)
            why = ENOMEM;
    }
    fclose(file);
    if (out != NULL && fclose(out) != 0 && why == 0)
        why = ENOMEM;
    return why;
}

int record_scan(const char *path, enum fab_source source, struct fab_report *report, struct fab_err *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "rbe");
    int why = file == NULL ? errno : record_read(file, RECORD_MAX_SIZE, &text, &size);
    int rc = why == 0        ? record_parse(text, size, path, source, report, err)
             : why == ENOMEM ? fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: out of memory", path)
             : why == EFBIG  ? too_large(path, err)
                             : fab_fail(err, why == ENOENT ? PMIXFAB_ERR_NOTFOUND : PMIXFAB_ERR_IO, "%s: %s",
                                        path, strerror(why));
    free(text);
    return rc;
}

/* ---- a report as a recorded machine, for record.c to read ---- */

/* Facts of a kind with many values are an array. */
static int record_put_fact(json_t *into, enum fab_fact kind, const char *text)
{
    const char *key = fab_fact_name(kind);
    if (!fab_fact_many(kind))
        return json_object_set_new(into, key, json_string(text));
    if (json_object_get(into, key) == NULL && json_object_set_new(into, key, json_array()) != 0)
        return -1;
    return json_array_append_new(json_object_get(into, key), json_string(text));
}

static json_t *item_json(const struct fab_report *report, const struct fab_report_item *item)
{
    json_t *out = json_object(), *estimates = json_object();
    int bad = json_object_set_new(out, "source", json_string(fab_source_name(item->source)));
    for (uint32_t i = item->first; i < item->first + item->n; i++) {
        const struct fab_report_fact *fact = &report->facts[i];
        bad |= record_put_fact(fact->estimate ? estimates : out, fact->kind, report->pool + fact->text);
    }
    if (json_object_size(estimates) > 0)
        bad |= json_object_set(out, "estimates", estimates);
    json_decref(estimates);
    if (bad == 0)
        return out;
    json_decref(out);
    return NULL;
}

int probe_record(const struct fab_report *report, FILE *out)
{
    if (!report->finished)
        return PMIXFAB_ERR_INVAL;
    fprintf(out, "{\"host\": \"%s\", \"items\": [", report->host);
    for (uint32_t i = 0; i < report->n_items; i++) {
        json_t *item = item_json(report, &report->items[i]);
        char *line = item == NULL ? NULL : json_dumps(item, JSON_ENSURE_ASCII);
        json_decref(item);
        if (line == NULL)
            return PMIXFAB_ERR_NOMEM;
        fprintf(out, "%s\n  %s", i > 0 ? "," : "", line);
        free(line);
    }
    fprintf(out, "%s]}\n", report->n_items > 0 ? "\n" : "");
    return fflush(out) == 0 && !ferror(out) ? PMIXFAB_OK : PMIXFAB_ERR_IO;
}
