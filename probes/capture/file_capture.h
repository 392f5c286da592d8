/* file_capture.h - inside of the reader of captures: its state, its records, its cables. */
#ifndef FAB_PROBES_CAPTURE_FILE_CAPTURE_H
#define FAB_PROBES_CAPTURE_FILE_CAPTURE_H

#include "probes/capture/file_scan.h"
#include "probes/core/probe.h"
#include "probes/fabric/observed.h"

/* The far end of a port, as its line names it. */
struct capture_peer {
    uint64_t guid;      /* of the node */
    uint64_t port_guid; /* 0: not said */
    uint16_t column;    /* where it stands */
    uint8_t port;
    uint8_t is_switch;
};

/* A node by its GUID. */
struct capture_node {
    uint64_t guid;
    uint32_t index;      /* in the inventory */
    uint32_t first_port; /* its ports there: neighbours, as they stand in the file */
    uint32_t n_ports;
    uint16_t column; /* where its name stands */
};

struct capture {
    const char *file;
    const struct probe_sink *sink; /* gets remarks; may be NULL */
    struct fab_inventory *inv;
    struct fab_err *err;
    struct capture_node *nodes; /* as many as the inventory has, in its order until capture_join() */
    struct capture_peer *peers; /* one a port */
    uint32_t cap_nodes, cap_peers;
    uint32_t n_loops, loop_line; /* ports that are cabled to their own node: left out; the first one's line */
    uint32_t n_rates;            /* cables whose ends tell different rates */
};

/*
 * Cable the ports whose lines name each other. A port whose far end has no line stays uncabled: it is up and
 * leads nowhere. Refused: two records of one node, cables that the two ends tell differently, ports that the
 * far node cannot have; and a far end without a line when its node is the last one of the file, because then
 * the file was cut. Ends of one cable with different rates get a remark.
 */
int capture_join(struct capture *c);

/* The key=value lines before a node's own line. */
struct head {
    uint64_t system_guid, guid;
    uint32_t vendor_id, device_id;
    uint32_t line; /* its first line, 0: none is open */
};

struct reader {
    struct capture c;
    struct scan s;
    int (*read_line)(struct reader *r); /* of this kind of file */
    struct head head;
    uint32_t node;    /* whose record this is, FAB_NONE: none's */
    uint8_t seen[32]; /* its port numbers so far, a bit each */
    uint64_t initiator, initiator_port;
    struct report_line *lines; /* of a report of ports */
    uint32_t n_lines, cap_lines;
};

/* Add a node, whose record is open then; its name stands in this column of its line. */
int capture_add_node(struct reader *r, const struct fab_node *node, uint16_t column);
/* The open record's node has a port of this number, which stands at `place`, and it is the first such line.
 */
int capture_claim_port(struct reader *r, uint32_t number, const char *place);
/* Add a port of the open record. One that is cabled to its own node is counted instead. */
int capture_add_port(struct reader *r, const struct fab_port *port, const struct capture_peer *peer);

/* Lines of a record, behind the word that they begin with. */
int capture_read_vendor(struct reader *r);
int capture_read_device(struct reader *r);
int capture_read_system_guid(struct reader *r);
int capture_read_guid(struct reader *r); /* of the node: switchguid=, caguid=, rtguid= */
int capture_read_node(struct reader *r, enum node_type type, char letter);
int capture_read_port(struct reader *r);

/* ---- file_ports.c: a report of ports ---- */

bool capture_is_report_line(const struct scan *s);
int capture_read_report_line(struct reader *r);
int capture_build_report(struct reader *r); /* nodes and ports, when all lines are read */

/* ---- file_subnet.c: opensm-subnet.lst ---- */

bool capture_is_subnet_line(const struct scan *s);
int capture_read_subnet_line(struct reader *r);

/* Memory or the model's limits are exhausted in this line. */
int capture_no_room(struct reader *r, int code);

#endif
