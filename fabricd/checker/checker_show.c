#include "fabricd/checker/checker_show.h"

#include "fabricd/base/metrics.h"
#include "fabricd/control/connection.h"

json_t *checker_json(const struct checker *checker)
{
    struct checker_status s;
    checker_status(checker, &s);
    return json_pack("{s:o, s:i, s:o, s:o}", "pid", s.pid == 0 ? json_null() : json_integer(s.pid),
                     "replaced", (int)s.replaced, "last", control_time(s.last), "why",
                     s.why[0] == '\0' ? json_null() : json_string(s.why));
}

void checker_metrics(FILE *out, const struct checker *checker)
{
    struct checker_status s;
    checker_status(checker, &s);
    metrics_one(out, "fabricd_checker_replaced_total", "counter",
                "Checker processes that died, or waited for munged or a name server for too long.",
                s.replaced);
}
