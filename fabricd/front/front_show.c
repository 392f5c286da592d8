#include "fabricd/front/front_show.h"

#include "fabricd/control/connection.h"
#include "fabricd/front/front.h"
#include "fabricd/metrics/metrics.h"

static json_t *front_text(const char *text)
{
    return text[0] == '\0' ? json_null() : json_string(text);
}

static json_t *refused_json(void)
{
    json_t *list = json_array();
    struct front_refused one;
    for (unsigned at = 0; front_refused(&at, &one);)
        json_array_append_new(list,
                              json_pack("{s:s, s:i}", "origin", one.origin, "seconds", (int)one.seconds));
    return list;
}

json_t *front_json(void)
{
    struct front_status front;
    front_status(&front);
    return json_pack("{s:o, s:b, s:b, s:b, s:b, s:i, s:i, s:o, s:o, s:o, s:i, s:o}", "pid",
                     front.pid == 0 ? json_null() : json_integer(front.pid), "separated", front.separated,
                     "filtered", (front.holds & FRONT_FILTERED) != 0, "confined",
                     (front.holds & FRONT_CONFINED) != 0, "bounded", (front.holds & FRONT_BOUNDED) != 0,
                     "connected", (int)front.connected, "replaced", (int)front.replaced, "last",
                     control_time(front.last), "why", front_text(front.why), "origin",
                     front_text(front.origin), "parted", (int)front.parted, "refused", refused_json());
}

void front_metrics(FILE *out)
{
    struct front_status front;
    struct front_refused one;
    unsigned n_refused = 0;
    front_status(&front);
    metrics_one(out, "fabricd_front_replaced_total", "counter",
                "Front processes that died, hung or grew, and were replaced.", front.replaced);
    metrics_one(out, "fabricd_front_connections", "gauge", "Tools, relays and nodes that are connected.",
                front.connected);
    for (unsigned at = 0; front_refused(&at, &one);)
        n_refused++;
    metrics_one(out, "fabricd_front_refused", "gauge",
                "Users and hosts that are refused because a front was lost on a message of theirs.",
                n_refused);
}
