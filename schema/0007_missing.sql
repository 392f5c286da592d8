-- Nodes that no sweep sees any more and whose place is kept.
ALTER TABLE node ADD COLUMN missing INTEGER NOT NULL DEFAULT 0 CHECK (missing IN (0, 1));

-- Since when. `since` is for people. How long it is counts by the clock that runs since the machine was booted,
-- which nobody sets: `counted` in microseconds, of the boot `boot`.
CREATE TABLE missing (
    node    INTEGER PRIMARY KEY,
    since   INTEGER NOT NULL,
    boot    TEXT NOT NULL,
    counted INTEGER NOT NULL
) STRICT;
