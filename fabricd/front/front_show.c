#include "fabricd/front/front_show.h"

#include "fabricd/control/connection.h"
#include "fabricd/front/front.h"
#include "fabricd/metrics/metrics.h"

json_t *front_json(void)
{
    struct front_status front;
    front_status(&front);
    return json_pack("{s:o, s:b, s:i, s:o, s:o}", "pid",
                     front.pid == 0 ? json_null() : json_integer(front.pid), "separated", front.separated,
                     "replaced", (int)front.replaced, "last", control_time(front.last), "why",
                     front.why[0] == '\0' ? json_null() : json_string(front.why));
}

void front_metrics(FILE *out)
{
    struct front_status front;
    front_status(&front);
    metrics_one(out, "fabricd_front_replaced_total", "counter",
                "Front processes that died, hung or grew, and were replaced.", front.replaced);
}
