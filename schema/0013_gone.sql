-- Generations that were published and are not in this store: at its open, newer ones were known elsewhere. above: its
-- newest one then. newest: the newest known one. found: when, microseconds since 1970.
CREATE TABLE gone (
    above  INTEGER PRIMARY KEY,
    newest INTEGER NOT NULL CHECK (newest > above),
    found  INTEGER NOT NULL,
    why    TEXT NOT NULL
) STRICT;
