-- Fabric endpoint numbers of jobs (docs/design/launch.md, "Endpoints"). The numbers of a job in a plane may be several
-- rows. pid, started: the process that started the job, and its start time, in the kernel's ticks since boot; started 0:
-- not visible. boot: the kernel's id of the host's boot, or 'unknown'. since: microseconds since 1970.
CREATE TABLE endpoint (
    plane   TEXT NOT NULL,
    first   INTEGER NOT NULL CHECK (first > 0),
    last    INTEGER NOT NULL CHECK (last BETWEEN first AND 4294967295),
    job     TEXT NOT NULL,
    uid     INTEGER NOT NULL,
    pid     INTEGER NOT NULL,
    started INTEGER NOT NULL,
    boot    TEXT NOT NULL,
    since   INTEGER NOT NULL,
    PRIMARY KEY (plane, first)
) STRICT;

CREATE TRIGGER endpoint_once BEFORE INSERT ON endpoint BEGIN
    SELECT raise(ABORT, 'a number of an endpoint is handed out already') FROM endpoint
        WHERE plane = new.plane AND first <= new.last AND last >= new.first;
END;
