-- A digest (XXH3) of the generation, its changes, and the digest of the generation before it: what is changed, taken
-- out or added in the history later shows from there on. NULL: published by a fabricd without digests.
ALTER TABLE generation ADD COLUMN digest INTEGER;

-- That of the newest generation that was trimmed, from which the first one that is left goes on.
CREATE TABLE trimmed_digest (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    generation INTEGER NOT NULL,
    digest     INTEGER
) STRICT;
