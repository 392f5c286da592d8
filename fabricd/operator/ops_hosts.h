/* control_nodes.h - what the control socket says of nodes that report, and does with them. */
#ifndef FABRICD_CONTROL_NODES_H
#define FABRICD_CONTROL_NODES_H

#include "fabricd/control/control_priv.h"

void control_op_nodes(struct connection *connection, json_t *request);
void control_op_deliver(struct connection *connection, json_t *request);
void control_op_forget(struct connection *connection, json_t *request);

/* A host has delivered: for those who asked it to. (a host_reports_heard_fn) */
void ops_host_heard(const char *host, void *cbdata);

/* Ask a node to scan, and wait for nothing. */
struct daemon;
void control_request_scan(const struct daemon *daemon, const char *host);

/*
 * Ask a node to scan, wait for its delivery or until it is clear that none comes, and go on with a sweep
 * that answers the request.
 */
void control_refresh_node(struct connection *connection, const char *host, bool accept_partial);

/* ---- control_backup.c ---- */

void control_op_backup(struct connection *connection, json_t *request);

#endif
