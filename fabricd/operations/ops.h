/*
 * ops.h - the room of what an operator asks of the scheduler's fabricd on the control socket
 * (docs/control.md): the commands, a file a subject.
 */
#ifndef FABRICD_OPERATIONS_OPS_H
#define FABRICD_OPERATIONS_OPS_H

#include <stdio.h>

#include "fabricd/control/connection.h"

/* The sweep that is compared, and not published (ops_verify.c). One at a time. */
struct verifying {
    struct verify_asking *asking; /* those who wait for it; NULL: none goes on */
    struct sweep *sweep;
    struct timer *tick;
    uint64_t generation; /* that was served when the sweep began */
    unsigned tries;
    int64_t since; /* microseconds since 1970 */
};

/* What the commands work on: the owner of the control socket. main/ hands it over. */
struct ops_parts {
    struct event_base *base;
    const struct config *config;
    struct counts *counts;
    struct scheduler *scheduler;
    struct publisher *publisher;
    struct host_reports *reports;
    struct pmix_server *pmix;
    struct channel_server *channel;   /* of the nodes */
    struct credential_worker *worker; /* of munge and names */
    struct ingest *ingest;            /* NULL: nodes cannot deliver */
    struct findings *findings;
    struct backup *backup;
    struct exports *exports;
    struct endpoints *endpoints;
    /* A restore's copy is made: the role is to end, put it in place, answer here, and begin anew. 0: it is
     * not. */
    int restored;
    struct scan_asking *asking; /* those who wait for a node; NULL: nobody does */
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

/* A host has delivered: for those who asked it to. (a host_reports_heard_fn) */
void ops_host_heard(const char *host, void *parts);

/* ---- inside ---- */

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

/* `check` of the store: its history against its digests. */
void control_check_store(struct connection *connection);

/* Ask a node to scan, and wait for nothing. */
void control_request_scan(const struct ops_parts *parts, const char *host);

/*
 * Ask a node to scan, wait for its delivery or until it is clear that none comes, and go on with a sweep
 * that answers the request.
 */
void control_refresh_node(struct connection *connection, const char *host, bool accept_partial);

#endif
