-- Missing nodes, whose places are kept.
ALTER TABLE node ADD COLUMN missing INTEGER NOT NULL DEFAULT 0 CHECK (missing IN (0, 1));

-- Start of the time. `since` is for users. The length is measured by the clock since the machine's boot, which cannot
-- be set: `counted` in microseconds, of the boot `boot`.
CREATE TABLE missing (
    node    INTEGER PRIMARY KEY,
    since   INTEGER NOT NULL,
    boot    TEXT NOT NULL,
    counted INTEGER NOT NULL
) STRICT;
