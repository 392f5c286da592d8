/* ops_await.c - the facts of the scheduler for `await`. */
#include "fabricd/base/counts.h"
#include "fabricd/engine/scheduler.h"
#include "fabricd/pmix/pmix_server.h"
#include "fabricd/jobs/exports.h"
#include "fabricd/operations/ops.h"

void ops_await_facts(const void *owner, struct await_facts *out)
{
    const struct ops_parts *parts = owner;
    struct scheduler_status status;
    struct pmix_server_status pmix;
    scheduler_status(parts->scheduler, &status);
    pmix_server_status(parts->pmix, &pmix);
    out->generation = scheduler_announced(parts->scheduler);
    out->busy = scheduler_busy(parts->scheduler);
    out->counts[AWAIT_SWEEP] = counted(parts->counts, COUNT_SWEEPS_OK) +
                               counted(parts->counts, COUNT_SWEEPS_PARTIAL) +
                               counted(parts->counts, COUNT_SWEEPS_FAILED);
    out->counts[AWAIT_LIGHT_SWEEP] = status.monitor.light_sweeps;
    out->counts[AWAIT_DELIVERY] = counted(parts->counts, COUNT_DELIVERIES);
    out->counts[AWAIT_EXPORT] = exports_ended(parts->exports);
    out->counts[AWAIT_HOOK] =
        counted(parts->counts, COUNT_HOOKS) + counted(parts->counts, COUNT_HOOKS_FAILED);
    out->counts[AWAIT_PMIX] = pmix.served;
}
