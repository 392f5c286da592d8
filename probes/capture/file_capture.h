/* file_capture.h - private parts of the reader of captures: its state, its records, its cables. */
#ifndef FAB_PROBES_CAPTURE_FILE_CAPTURE_H
#define FAB_PROBES_CAPTURE_FILE_CAPTURE_H

#include "probes/capture/capture_file.h"
#include "probes/core/probe.h"
#include "probes/fabric/observed.h"

/* The far end of a port, as named in the port's line. */
struct capture_peer {
    uint64_t guid;      /* of the node */
    uint64_t port_guid; /* 0: not given */
    uint16_t column;    /* its position */
    uint8_t port;
    uint8_t is_switch;
};

/* A node by its GUID. */
struct capture_node {
    uint64_t guid;
    uint32_t index;      /* in the inventory */
    uint32_t first_port; /* its ports there: neighbours, in the order of the file */
    uint32_t n_ports;
    uint16_t column; /* position of its name */
};

struct capture {
    const char *file;
    const struct probe_sink *sink; /* gets remarks; may be NULL */
    struct fab_inventory *inv;
    struct fab_err *err;
    struct capture_node *nodes; /* as many as in the inventory, in its order until capture_join() */
    struct capture_peer *peers; /* one for each port */
    uint32_t cap_nodes, cap_peers;
    uint32_t n_loops, loop_line; /* omitted ports, cabled to their own node; the first one's line */
    uint32_t n_rates;            /* cables whose ends have different rates */
};

/*
 * Cable the ports whose lines name each other. If the far end of a port has no line, the port is up but stays
 * uncabled. Ends of one cable with different rates give a remark. Errors:
 * - two records of one node
 * - cables with contradicting ends
 * - ports that the far node cannot have
 * - a far end without a line, if its node is the last one of the file. Then the file was cut.
 */
int capture_join(struct capture *c);

/* The key=value lines before a node's own line. */
struct head {
    uint64_t system_guid, guid;
    uint64_t inner_guid; /* in the parentheses after guid; 0: none */
    uint32_t vendor_id, device_id;
    uint32_t line; /* its first line, 0: none is open */
    bool has_vendor;
};

/* Lines that are not part of the record. Before its first line and after its last they are skipped. */
struct noise {
    uint32_t first, last; /* their numbers; 0: none since the last line of the record */
    int rc;               /* the error of the first one, used if the record continues */
    struct fab_err err;
};

/* ---- lines that describe both ends of a cable ---- */

/* One end in a line. 0 or NULL: not given. Pointers are into the file's text. */
struct told_end {
    uint64_t node, guid; /* GUIDs of the node and of the port; all ports of a switch have the switch's */
    uint64_t system_guid;
    uint32_t vendor_id, device_id;
    const char *name, *label; /* description; name of the port on the front panel */
    const char *place, *port_place;
    uint32_t lid, num, name_len;
    uint16_t label_len;
    uint8_t type; /* enum node_type */
    uint8_t num_ports;
};

struct told_line {
    struct told_end near, far;
    const char *start; /* of the line */
    uint32_t number;
    uint32_t head; /* number of the line that names the node; 0: none */
    uint8_t width, speed, state;
};

#define DUMP_COLUMNS 9 /* columns of a net_dump's table that are read */

struct told {
    struct told_line *lines;
    uint32_t n, cap;
    bool ascending;   /* an HCA's lines are in ascending order of ports; else descending */
    bool far_is_told; /* an end without a line of its own is taken from the other end's line */
};

struct reader {
    struct capture c;
    struct scan s;
    const char *what; /* expected kind of file */
    struct head head;
    struct noise noise;
    uint32_t node;       /* the node of the present record; FAB_NONE: none */
    enum node_type type; /* of the present line of a node */
    uint8_t seen[32];    /* its port numbers so far, one bit each */
    uint64_t initiator, initiator_port;
    bool begun; /* a line of the record was read */
    struct told told;
    struct told_end heading, dump; /* the node of the following ports, in iblinkinfo and in a net_dump */
    uint32_t heading_line;         /* 0: none so far */
    /* positions of the columns in a line; 0 fields: unknown */
    uint8_t dump_fields[DUMP_COLUMNS], n_dump_fields;
};

/* Add a node, whose record is open then; its name is in this column of its line. */
int capture_add_node(struct reader *r, const struct fab_node *node, uint16_t column);
/*
 * Check that the node of the open record has a port of this number, at `place`, and that it is the first such
 * line.
 */
int capture_claim_port(struct reader *r, uint32_t number, const char *place);
/* Add a port of the open record. A port that is cabled to its own node is counted instead. */
int capture_add_port(struct reader *r, const struct fab_port *port, const struct capture_peer *peer);

typedef int line_reader(struct reader *r);

/*
 * Return the function that reads this line of a record, and move past its first word. NULL: it is not such a
 * line, or it is the line of a port.
 */
line_reader *capture_record_reader(struct reader *r);
int capture_read_port(struct reader *r);
/*
 * Return whether it is `Switch 8 "sw1"`, the form of ibsim's own files; a record has `"S-` and a GUID there.
 */
bool capture_is_net_line(const struct scan *s);

/* Keep a line that describes both ends; a record may not mix such lines with others. */
int capture_tell(struct reader *r, const struct told_line *line);
int capture_build_told(struct reader *r); /* nodes and ports, after all lines are read */

/*
 * Return the function that reads such a line of ibnetdiscover -p, opensm-subnet.lst, iblinkinfo or
 * ibdiagnet2.net_dump. NULL: it is not such a line.
 */
line_reader *capture_both_ends_reader(const struct reader *r);

/* Report that memory or a limit of the model is exhausted in this line. */
int capture_no_room(struct reader *r, int code);

#endif
