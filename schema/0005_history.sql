-- The history as a whole. trimmed: changes of generations up to this one were removed. changes: number of rows of
-- `change`. above: the next generation is higher than this one, too, although no row has this number.
CREATE TABLE history (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    trimmed INTEGER NOT NULL,
    changes INTEGER NOT NULL,
    above   INTEGER NOT NULL,
    checked INTEGER NOT NULL CHECK (checked = 7 * trimmed + 3 * changes + 5 * above + 1717658212)
) STRICT;
INSERT INTO history SELECT 1, 0, n, 0, 3 * n + 1717658212 FROM (SELECT count(*) AS n FROM change);
