-- Generations that were given out and are not in this store: when it was opened it was older than what was known of
-- it elsewhere. above: its newest one then. newest: the newest one that was known. found: when, microseconds since 1970.
CREATE TABLE gone (
    above  INTEGER PRIMARY KEY,
    newest INTEGER NOT NULL CHECK (newest > above),
    found  INTEGER NOT NULL,
    why    TEXT NOT NULL
) STRICT;
