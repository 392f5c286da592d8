-- Lost objects that have not returned: switches, HCAs that had a cable, and cables. seen: when it was seen last
-- (microseconds since 1970, 0: not known). A change that reports its return, or its replacement, deletes it.
CREATE TABLE lost_node (
    guid       INTEGER PRIMARY KEY,
    kind       INTEGER NOT NULL, -- as in node
    host       TEXT NOT NULL,
    name       TEXT NOT NULL,
    generation INTEGER NOT NULL, -- in which it was lost
    seen       INTEGER NOT NULL
) STRICT;

-- a is the end with the lower GUID, as in link. The texts are the last display names: "leaf1[8]".
CREATE TABLE lost_cable (
    a_node     INTEGER NOT NULL,
    a_num      INTEGER NOT NULL,
    b_node     INTEGER NOT NULL,
    b_num      INTEGER NOT NULL,
    a_text     TEXT NOT NULL,
    b_text     TEXT NOT NULL,
    width      INTEGER NOT NULL,
    speed      INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    seen       INTEGER NOT NULL,
    PRIMARY KEY (a_node, a_num, b_node, b_num)
) STRICT, WITHOUT ROWID;

-- A host or switch that was renamed in this generation, or replaced by one of another name: the histories of both names
-- are connected. Rows of trimmed generations are deleted when a row is written. (The columns are in the order of the
-- key: in another order SQLite 3.40 finds NULLs in such a table.)
CREATE TABLE renamed (
    former     TEXT NOT NULL,
    generation INTEGER NOT NULL,
    name       TEXT NOT NULL,
    PRIMARY KEY (former, generation, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX renamed_name ON renamed (name, generation);

-- For changes that are in the history already, if their text is unambiguous: hosts and switches that were renamed, and
-- switches that were replaced by one of another name.
WITH lines AS (
    SELECT generation, kind, before, after, substr(subjects, 1, instr(subjects, char(10)) - 1) AS former,
           substr(subjects || char(10), instr(subjects, char(10)) + 1) AS others
    FROM change WHERE kind IN ('name', 'switch-replaced') AND instr(subjects, char(10)) > 0)
INSERT OR IGNORE INTO renamed (former, name, generation)
    SELECT former, substr(others, 1, instr(others, char(10)) - 1), generation FROM lines
    WHERE (kind = 'name' AND before = former AND after = substr(others, 1, instr(others, char(10)) - 1))
       OR (kind = 'switch-replaced' AND substr(before, 20) = former
           AND substr(after, 20) = substr(others, 1, instr(others, char(10)) - 1));
