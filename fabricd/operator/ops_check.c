/* ops_check.c - what looks wrong. */
#include "fabricd/operator/ops.h"
#include "fabricd/publish/publish.h"
#include "fabricd/scheduler/scheduler.h"

void control_op_check(struct connection *connection, json_t *request)
{
    const struct ops_parts *parts = connection->control->owner;
    struct fab_findings found;
    struct fab_err err = {""};
    (void)request;
    int rc = scheduler_check(parts->scheduler, &found, &err);
    if (rc != PMIXFAB_OK) {
        connection_fail(connection, rc, "%s", err.text);
        return;
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < found.n; i++) {
        const struct fab_finding *f = &found.findings[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "severity",
                                              fab_severity_name(fab_check_severity(f->kind)), "kind",
                                              fab_check_name(f->kind), "where", f->where, "what", f->what,
                                              "hint", fab_check_hint(f->kind)));
    }
    connection_send(connection,
                    json_pack("{s:b, s:I, s:o}", "ok", 1, "generation",
                              (json_int_t)publisher_generation(parts->publisher), "findings", list));
    fab_findings_destroy(&found);
}
