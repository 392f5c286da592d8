-- Missing cables of HCAs that are present; their places are kept.
ALTER TABLE port ADD COLUMN missing INTEGER NOT NULL DEFAULT 0 CHECK (missing IN (0, 1));

-- One row per port. num 0: the node as a whole, which is a switch, or an HCA from before this version.
CREATE TABLE missing_place (
    node    INTEGER NOT NULL,
    num     INTEGER NOT NULL CHECK (num BETWEEN 0 AND 254),
    since   INTEGER NOT NULL,
    boot    TEXT NOT NULL,
    counted INTEGER NOT NULL,
    PRIMARY KEY (node, num)
) STRICT, WITHOUT ROWID;
INSERT INTO missing_place SELECT node, 0, since, boot, counted FROM missing;
DROP TABLE missing;
ALTER TABLE missing_place RENAME TO missing;
