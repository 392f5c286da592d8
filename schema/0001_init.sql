-- The store of fabricd, version 1. Files here are append-only: a change of the schema is a new file.
--
-- GUIDs and GID prefixes are 64 bits in SQLite's signed integers: printf('%016x', guid) shows them in the
-- usual form. Times are microseconds since 1970-01-01 UTC.

-- Published generations; the newest is served.
CREATE TABLE generation (
    generation INTEGER PRIMARY KEY CHECK (generation > 0),
    published  INTEGER NOT NULL,
    partial    INTEGER NOT NULL CHECK (partial IN (0, 1))
) STRICT;

-- The history: the changes of each generation, in the order of their publication.
CREATE TABLE change (
    generation INTEGER NOT NULL REFERENCES generation,
    seq        INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    what       TEXT NOT NULL,
    before     TEXT NOT NULL,
    after      TEXT NOT NULL,
    PRIMARY KEY (generation, seq)
) STRICT, WITHOUT ROWID;

-- Planes keep their numbers for ever, also retired ones. digest covers the whole row (XXH3).
CREATE TABLE plane (
    number     INTEGER PRIMARY KEY CHECK (number >= 0),
    name       TEXT NOT NULL,
    retired    INTEGER NOT NULL CHECK (retired IN (0, 1)),
    generation INTEGER NOT NULL REFERENCES generation,
    digest     INTEGER NOT NULL,
    snapshot   BLOB NOT NULL
) STRICT;

-- The last published inventory. digest covers all of it (XXH3); no row: nothing was published.
CREATE TABLE inventory (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    digest INTEGER NOT NULL
) STRICT;

CREATE TABLE subnet (
    number INTEGER PRIMARY KEY CHECK (number >= 0),
    prefix INTEGER NOT NULL
) STRICT;

CREATE TABLE node (
    guid        INTEGER PRIMARY KEY,
    system_guid INTEGER NOT NULL,
    kind        INTEGER NOT NULL, -- 1 switch, 2 HCA, 3 router, 4 aggregation node
    description BLOB NOT NULL,    -- bytes as received from the node, without an encoding
    host        TEXT NOT NULL,
    name        TEXT NOT NULL,
    unnamed     INTEGER NOT NULL,
    vendor_id   INTEGER NOT NULL,
    device_id   INTEGER NOT NULL,
    num_ports   INTEGER NOT NULL,
    enhanced    INTEGER NOT NULL,
    lid         INTEGER NOT NULL,
    lmc         INTEGER NOT NULL,
    chassis     INTEGER NOT NULL,
    slot_type   INTEGER NOT NULL,
    slot        INTEGER NOT NULL,
    chip        INTEGER NOT NULL
) STRICT;

CREATE TABLE port (
    node   INTEGER NOT NULL REFERENCES node,
    num    INTEGER NOT NULL,
    guid   INTEGER NOT NULL,
    lid    INTEGER NOT NULL,
    lmc    INTEGER NOT NULL,
    state  INTEGER NOT NULL, -- 0 unknown, 1 down, 2 init, 3 armed, 4 active
    width  INTEGER NOT NULL, -- lanes
    speed  INTEGER NOT NULL, -- 0 unknown, 1 SDR, 2 DDR, 3 QDR, 4 FDR10, 5 FDR, 6 EDR, 7 HDR, 8 NDR, 9 XDR
    subnet INTEGER NOT NULL,
    PRIMARY KEY (node, num)
) STRICT, WITHOUT ROWID;

-- Cables, once each: a is the end with the lower GUID (unsigned), then port number.
CREATE TABLE link (
    a_node INTEGER NOT NULL,
    a_num  INTEGER NOT NULL,
    b_node INTEGER NOT NULL,
    b_num  INTEGER NOT NULL,
    PRIMARY KEY (a_node, a_num),
    UNIQUE (b_node, b_num),
    FOREIGN KEY (a_node, a_num) REFERENCES port (node, num),
    FOREIGN KEY (b_node, b_num) REFERENCES port (node, num)
) STRICT, WITHOUT ROWID;
