-- What hosts report of their own devices, as delivered last. digest is that of bytes (topo/report.h), checksum
-- covers the whole row (XXH3).
CREATE TABLE report (
    host     TEXT PRIMARY KEY,
    digest   INTEGER NOT NULL,
    received INTEGER NOT NULL,
    uid      INTEGER NOT NULL, -- who delivered it
    bytes    BLOB NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;

-- Which report of each host was published last, so that the history gets every change once. bytes is NULL as
-- long as they are those of report. checksum covers host and digest.
CREATE TABLE report_published (
    host     TEXT PRIMARY KEY,
    digest   INTEGER NOT NULL,
    bytes    BLOB,
    checksum INTEGER NOT NULL
) STRICT;
