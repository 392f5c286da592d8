-- Announced swaps of a host or a switch, between these times (microseconds since 1970).
CREATE TABLE expected (
    name    TEXT NOT NULL PRIMARY KEY,
    since   INTEGER NOT NULL,
    until   INTEGER NOT NULL CHECK (until > since),
    uid     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
