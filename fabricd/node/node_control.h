/*
 * node_control.h - what can be asked on a node's control socket (docs/control.md).
 */
#ifndef FABRICD_NODE_CONTROL_H
#define FABRICD_NODE_CONTROL_H

#include "fabricd/control/control_priv.h"
#include "fabricd/node/node.h"

extern const struct control_op node_control_ops[]; /* their owner is a struct node */

/* What came of a scan and its delivery, for those who wait for it. */
void node_control_scanned(const struct node *node, uint64_t number, int code, const char *reason);

/* For `metrics`, and the metrics file. (a metrics_fn) */
char *metrics_of_node(const void *node);

#endif
