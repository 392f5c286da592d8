-- A digest (XXH3) of the generation, its changes, and the digest of the generation before it: a later modification of
-- the history changes all digests from there on. NULL: published by a fabricd without digests.
ALTER TABLE generation ADD COLUMN digest INTEGER;

-- The digest of the newest trimmed generation, on which the first remaining one is based.
CREATE TABLE trimmed_digest (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    generation INTEGER NOT NULL,
    digest     INTEGER
) STRICT;
