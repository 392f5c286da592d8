-- The reason of a change, whether it was announced, when the new state was first seen and the old state last
-- (microseconds since 1970, NULL: not known), and its subjects: names of hosts and switches, a line each.
ALTER TABLE change ADD COLUMN why TEXT NOT NULL DEFAULT '';
ALTER TABLE change ADD COLUMN planned INTEGER NOT NULL DEFAULT 0 CHECK (planned IN (0, 1));
ALTER TABLE change ADD COLUMN first_seen INTEGER;
ALTER TABLE change ADD COLUMN last_seen INTEGER;
ALTER TABLE change ADD COLUMN subjects TEXT NOT NULL DEFAULT '';

-- The changes by subject, a host or a switch. The empty name has changes without a subject, which are searched by text.
-- Without references, which SQLite would check for each deleted change: code that deletes changes deletes these rows.
CREATE TABLE subject (
    name       TEXT NOT NULL,
    generation INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    PRIMARY KEY (name, generation, seq)
) STRICT, WITHOUT ROWID;

-- For changes that are in the history already, if their text is unambiguous.
UPDATE change SET subjects = what
    WHERE kind IN ('host-added', 'host-lost', 'switch-added', 'switch-lost', 'report-added', 'report-lost');
UPDATE change SET subjects = substr(what, 1, instr(what, ' ') - 1)
    WHERE kind IN ('firmware', 'driver', 'state', 'speed', 'mtu', 'fact', 'device-added', 'device-lost')
    AND instr(what, ' ') > 1
    AND (kind NOT LIKE 'device-%' OR length(what) - length(replace(what, ' ', '')) = 1);
-- "leaf1[8] - node001 HCA-1[1]", "leaf1[8] - spine1[2]"
UPDATE change SET subjects = substr(what, 1, instr(what, '[') - 1) || char(10)
                             || substr(substr(what, instr(what, ' - ') + 3), 1,
                                       instr(replace(substr(what, instr(what, ' - ') + 3), '[', ' '), ' ') - 1)
    WHERE kind IN ('link-added', 'link-lost', 'link-rate')
    AND instr(what, '[') > 1 AND instr(what, ' - ') > instr(what, '[')
    AND instr(what, ' - ') = instr(what, ' ')
    AND instr(substr(what, instr(what, ' - ') + 3), '[') > 1
    AND length(what) - length(replace(what, ' ', '')) IN (2, 3);

INSERT OR IGNORE INTO subject SELECT substr(subjects, 1, instr(subjects || char(10), char(10)) - 1), generation, seq
    FROM change;
INSERT OR IGNORE INTO subject SELECT substr(subjects, instr(subjects, char(10)) + 1), generation, seq
    FROM change WHERE instr(subjects, char(10)) > 0;
