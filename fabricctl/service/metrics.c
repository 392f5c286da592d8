/*
 * metrics.c - the daemon's counters and gauges, as it tells them.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ask.h"
#include "fabricctl/core/table.h"
#include "fabricctl/service/service.h"

/* Without the backslashes of the text format. */
static json_t *label_value(const char *value, size_t len)
{
    char *plain = malloc(len + 1);
    json_t *text;
    size_t n = 0;

    if (plain == NULL)
        return NULL;
    for (size_t i = 0; i < len; i++) {
        const bool escaped = value[i] == '\\' && i + 1 < len;

        i += escaped;
        plain[n++] = escaped && value[i] == 'n' ? '\n' : value[i];
    }
    text = json_stringn(plain, n);
    free(plain);
    return text;
}

/* The labels of a sample, `a="b",c="d"}`; *text moves behind them. */
static json_t *labels_json(const char **text)
{
    json_t *labels = json_object();
    char key[64];
    size_t len;

    while (**text != '}' && **text != '\n' && **text != '\0') {
        const char *name = *text, *value = strstr(name, "=\"");

        if (value == NULL)
            break;
        value += 2;
        for (len = 0; value[len] != '"' && value[len] != '\0'; len++)
            len += value[len] == '\\' && value[len + 1] != '\0';
        snprintf(key, sizeof(key), "%.*s", (int)(value - 2 - name), name);
        json_object_set_new(labels, key, label_value(value, len));
        *text = value + len + (value[len] == '"');
        *text += **text == ',';
    }
    *text += **text == '}';
    return labels;
}

/* Each sample as an object; lines that begin with # are comments. */
static json_t *metrics_json(const char *text)
{
    json_t *list = json_array();

    for (; *text != '\0'; text += strcspn(text, "\n"), text += *text == '\n') {
        const size_t len = strcspn(text, "{ \n");
        const char *name = text;
        json_t *labels;

        if (*text == '#' || len == 0)
            continue;
        text += len + (text[len] == '{');
        labels = name[len] == '{' ? labels_json(&text) : json_object();
        json_array_append_new(list, json_pack("{s:s#, s:o, s:f}", "name", name, (int)len, "labels", labels,
                                              "value", strtod(text, NULL)));
    }
    return list;
}

enum ctl_exit ctl_metrics(const struct ctl *ctl)
{
    enum ctl_exit status = ctl_control_only(ctl, "metrics");
    json_t *answer;
    const char *text;

    if (status != CTL_DONE)
        return status;
    if (ctl->format == CTL_CSV)
        return ctl_usage("no such format of metrics: csv: there are text (Prometheus') and json");
    status = ctl_ask(ctl, json_pack("{s:s}", "op", "metrics"), CTL_ANSWER_SECONDS, &answer);
    if (status != CTL_DONE)
        return status;
    text = json_string_value(json_object_get(answer, "text"));
    if (ctl->format == CTL_JSON)
        status = ctl_json_print(stdout, metrics_json(text != NULL ? text : ""));
    else
        fputs(text != NULL ? text : "", stdout);
    json_decref(answer);
    return status;
}
