#include "fabricd/front/front_show.h"

#include "fabricd/base/metrics.h"
#include "fabricd/control/connection.h"

static json_t *front_text(const char *text)
{
    return text[0] == '\0' ? json_null() : json_string(text);
}

static json_t *refused_json(const struct front *front)
{
    json_t *list = json_array();
    struct front_refused one;
    for (unsigned at = 0; front_refused(front, &at, &one);)
        json_array_append_new(list,
                              json_pack("{s:s, s:i}", "origin", one.origin, "seconds", (int)one.seconds));
    return list;
}

json_t *front_json(const struct front *front)
{
    struct front_status s;
    front_status(front, &s);
    return json_pack("{s:o, s:b, s:b, s:b, s:b, s:i, s:i, s:o, s:o, s:o, s:i, s:o}", "pid",
                     s.pid == 0 ? json_null() : json_integer(s.pid), "separated", s.separated, "filtered",
                     (s.holds & FRONT_FILTERED) != 0, "confined", (s.holds & FRONT_CONFINED) != 0, "bounded",
                     (s.holds & FRONT_BOUNDED) != 0, "connected", (int)s.connected, "replaced",
                     (int)s.replaced, "last", control_time(s.last), "why", front_text(s.why), "origin",
                     front_text(s.origin), "parted", (int)s.parted, "refused", refused_json(front));
}

void front_metrics(FILE *out, const struct front *front)
{
    struct front_status s;
    struct front_refused one;
    unsigned n_refused = 0;
    front_status(front, &s);
    metrics_one(out, "fabricd_front_replaced_total", "counter",
                "Front processes that died, hung or grew, and were replaced.", s.replaced);
    metrics_one(out, "fabricd_front_connections", "gauge", "Tools and relays that are connected.",
                s.connected);
    for (unsigned at = 0; front_refused(front, &at, &one);)
        n_refused++;
    metrics_one(out, "fabricd_front_refused", "gauge",
                "Users and hosts that are refused because a front was lost on a message of theirs.",
                n_refused);
}
