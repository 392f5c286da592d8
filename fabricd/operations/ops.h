/*
 * ops.h - the room of the operators' commands of the scheduler's fabricd on the control socket
 * (docs/control.md), one file for each subject.
 */
#ifndef FABRICD_OPERATIONS_OPS_H
#define FABRICD_OPERATIONS_OPS_H

#include <stdio.h>

#include "fabricd/control/connection.h"

/* The sweep that is compared and not published (ops_verify.c). One at a time. */
struct verifying {
    struct verify_asking *asking; /* waiting callers; NULL: no sweep runs */
    struct sweep *sweep;
    struct timer *tick;
    uint64_t generation; /* served when the sweep began */
    unsigned tries;
    int64_t since; /* microseconds since 1970 */
};

/* The parts that the commands use: the owner of the control socket. main/ fills it. */
struct ops_parts {
    struct event_base *base;
    const struct config *config;
    struct counts *counts;
    struct scheduler *scheduler;
    struct publisher *publisher;
    struct host_reports *reports;
    struct pmix_server *pmix;
    struct channel_server *channel;   /* of the nodes */
    struct credential_worker *worker; /* for munge and names */
    struct ingest *ingest;            /* NULL: nodes cannot deliver */
    struct findings *findings;
    struct backup *backup;
    struct exports *exports;
    struct endpoints *endpoints;
    /*
     * The copy of a restore is complete. The role has to end, put the copy in place, send the answer to
     * this descriptor, and start again. 0: no restore.
     */
    int restored;
    struct scan_asking *asking; /* callers that wait for a node; NULL: none */
    struct verifying verifying;
};

static inline struct ops_parts *ops_parts_of(const struct connection *connection)
{
    return connection->control->owner;
}

extern const struct control_op ops_of_scheduler[];

/* For `metrics`, and the metrics file, of a struct ops_parts. (a metrics_fn) */
void metrics_of_scheduler(FILE *out, const void *parts);

/* For `await`, of a struct ops_parts. (an await_facts_fn) */
void ops_await_facts(const void *parts, struct await_facts *out);

/* For `mend`. */
uint32_t ops_mend(void *parts);

/* Answer the callers that requested this host's delivery. (a host_reports_heard_fn) */
void ops_host_heard(const char *host, void *parts);

/* ---- internal ---- */

void control_op_refresh(struct connection *connection, json_t *request);
void control_op_check(struct connection *connection, json_t *request);
void control_op_counters(struct connection *connection, json_t *request);
void control_op_ack(struct connection *connection, json_t *request);
void control_op_expect(struct connection *connection, json_t *request);
void control_op_verify(struct connection *connection, json_t *request);
void control_op_history(struct connection *connection, json_t *request);
void control_op_diff(struct connection *connection, json_t *request);
void control_op_watch(struct connection *connection, json_t *request);
void control_op_ports(struct connection *connection, json_t *request);
void control_op_endpoints(struct connection *connection, json_t *request);
void control_op_nodes(struct connection *connection, json_t *request);
void control_op_deliver(struct connection *connection, json_t *request);
void control_op_forget(struct connection *connection, json_t *request);
void control_op_backup(struct connection *connection, json_t *request);
void control_op_restore(struct connection *connection, json_t *request);
void control_op_metrics(struct connection *connection, json_t *request);

/* Check the store for `check`: compare its history with its digests. */
void control_check_store(struct connection *connection);

/* Request a scan of a node, without waiting. */
void control_request_scan(const struct ops_parts *parts, const char *host);

/*
 * Request a scan of a node, wait for its delivery or until none can come, and continue with a sweep that
 * answers the request.
 */
void control_refresh_node(struct connection *connection, const char *host, bool accept_partial);

#endif
