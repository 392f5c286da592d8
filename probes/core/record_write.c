/* record_write.c - a report as a recorded machine, for record.c to read. */
#include <jansson.h>
#include <stdlib.h>

#include "probes/core/probe.h"

/* Facts of a kind that an item may have many of are an array. */
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
