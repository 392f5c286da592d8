/* pmix_show.c - the state of the PMIx server, for `fabricctl status` and as metrics. */
#include "fabricd/base/metrics.h"
#include "fabricd/control/connection.h"
#include "fabricd/pmix/pmix_server.h"

json_t *pmix_server_json(const struct pmix_server *server)
{
    struct pmix_server_status s;
    pmix_server_status(server, &s);
    return json_pack("{s:o, s:b, s:b, s:b, s:b, s:b, s:i, s:i, s:o, s:o, s:i}", "pid",
                     s.pid == 0 ? json_null() : json_integer(s.pid), "separated", s.separated, "filtered",
                     s.filtered, "confined", s.confined, "bounded", s.bounded, "guarded", s.guarded,
                     "connected", (int)s.connected, "replaced", (int)s.replaced, "last", control_time(s.last),
                     "why", s.why[0] == '\0' ? json_null() : json_string(s.why), "parted", (int)s.parted);
}

void pmix_server_metrics(FILE *out, const struct pmix_server *server)
{
    struct pmix_server_status s;
    pmix_server_status(server, &s);
    metrics_one(out, "fabricd_pmix_replaced_total", "counter", "Replaced PMIx servers, which died or hung.",
                s.replaced);
    metrics_one(out, "fabricd_pmix_connections", "gauge", "Connected tools and relays.", s.connected);
}
