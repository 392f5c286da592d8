-- The last delivered report of each host about its own devices. digest is that of bytes (topo/model/report.h), checksum
-- covers the whole row (XXH3).
CREATE TABLE report (
    host     TEXT PRIMARY KEY,
    digest   INTEGER NOT NULL,
    received INTEGER NOT NULL,
    uid      INTEGER NOT NULL, -- the user who delivered it
    bytes    BLOB NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;

-- The last published report of each host, so that the history gets every change once. bytes is NULL as long as they
-- equal those in report. checksum covers host and digest.
CREATE TABLE report_published (
    host     TEXT PRIMARY KEY,
    digest   INTEGER NOT NULL,
    bytes    BLOB,
    checksum INTEGER NOT NULL
) STRICT;
