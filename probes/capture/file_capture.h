/* file_capture.h - inside of the reader of captures: its state, its records, its cables. */
#ifndef FAB_PROBES_CAPTURE_FILE_CAPTURE_H
#define FAB_PROBES_CAPTURE_FILE_CAPTURE_H

#include "probes/capture/capture_file.h"
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
    uint64_t inner_guid; /* in the parentheses behind guid, 0: none */
    uint32_t vendor_id, device_id;
    uint32_t line; /* its first line, 0: none is open */
    bool has_vendor;
};

/* Lines that are no part of the record. Before its first line and behind its last they are passed over. */
struct noise {
    uint32_t first, last; /* their numbers, 0: none since the last line of the record */
    int rc;               /* what the first one is refused with, where the record goes on behind it */
    struct fab_err err;
};

/* ---- lines that tell of both ends of a cable ---- */

/* One end, as a line tells it. What is 0 or NULL is not said. Pointers lead into the file's text. */
struct told_end {
    uint64_t node, guid; /* GUIDs of the node and of the port; all ports of a switch have its own */
    uint64_t system_guid;
    uint32_t vendor_id, device_id;
    const char *name, *label; /* description; what the front panel calls the port */
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
    uint32_t head; /* number of the line that names the node, 0: there is none */
    uint8_t width, speed, state;
};

#define DUMP_COLUMNS 9 /* of a net_dump's table: those that are read */

struct told {
    struct told_line *lines;
    uint32_t n, cap;
    bool ascending;   /* an HCA's lines follow each other by rising port numbers; else by falling ones */
    bool far_is_told; /* an end without a line of its own is taken from the other end's line */
};

struct reader {
    struct capture c;
    struct scan s;
    const char *what; /* the file should be */
    struct head head;
    struct noise noise;
    uint32_t node;       /* whose record this is, FAB_NONE: none's */
    enum node_type type; /* of the node's line that is read */
    uint8_t seen[32];    /* its port numbers so far, a bit each */
    uint64_t initiator, initiator_port;
    bool begun; /* a line of the record has been read */
    struct told told;
    struct told_end heading, dump; /* the node whose ports follow, of iblinkinfo and of a net_dump */
    uint32_t heading_line;         /* 0: none so far */
    uint8_t dump_fields[DUMP_COLUMNS], n_dump_fields; /* the columns' places in a line, 0 fields: not known */
};

/* Add a node, whose record is open then; its name stands in this column of its line. */
int capture_add_node(struct reader *r, const struct fab_node *node, uint16_t column);
/* The open record's node has a port of this number, which stands at `place`, and it is the first such line.
 */
int capture_claim_port(struct reader *r, uint32_t number, const char *place);
/* Add a port of the open record. One that is cabled to its own node is counted instead. */
int capture_add_port(struct reader *r, const struct fab_port *port, const struct capture_peer *peer);

typedef int line_reader(struct reader *r);

/* What reads the line of a record, which moves behind the word that it begins with; NULL: it is none, or a
 * port's. */
line_reader *capture_record_reader(struct reader *r);
int capture_read_port(struct reader *r);
/* `Switch 8 "sw1"`, as ibsim's own files name nodes; a record has `"S-` and a GUID there. */
bool capture_is_net_line(const struct scan *s);

/* Keep a line that tells of both ends; the record may have no other ones. */
int capture_tell(struct reader *r, const struct told_line *line);
int capture_build_told(struct reader *r); /* nodes and ports, when all lines are read */

/* What reads such a line, of ibnetdiscover -p, opensm-subnet.lst, iblinkinfo or ibdiagnet2.net_dump; NULL: it
 * is none. */
line_reader *capture_both_ends_reader(const struct reader *r);

/* Memory or the model's limits are exhausted in this line. */
int capture_no_room(struct reader *r, int code);

#endif
