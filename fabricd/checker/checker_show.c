#include "fabricd/checker/checker_show.h"

#include "fabricd/checker/checker.h"
#include "fabricd/control/connection.h"
#include "fabricd/metrics/metrics.h"

json_t *checker_json(void)
{
    struct checker_status checker;
    checker_status(&checker);
    return json_pack("{s:o, s:i, s:o, s:o}", "pid",
                     checker.pid == 0 ? json_null() : json_integer(checker.pid), "replaced",
                     (int)checker.replaced, "last", control_time(checker.last), "why",
                     checker.why[0] == '\0' ? json_null() : json_string(checker.why));
}

void checker_metrics(FILE *out)
{
    struct checker_status checker;
    checker_status(&checker);
    metrics_one(out, "fabricd_checker_replaced_total", "counter",
                "Checker processes that died, or waited for munged or a name server for too long.",
                checker.replaced);
}
