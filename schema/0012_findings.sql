-- Lost objects that the operator has forgotten: they are no findings, and are removed with their generation's history.
ALTER TABLE lost_node ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lost_cable ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;

-- Findings, and those that went within the last hour. id: of the kind and the subject (topo/changes/check.h), as a signed
-- number. Times are microseconds since 1970.
CREATE TABLE finding (
    id          INTEGER PRIMARY KEY,
    kind        TEXT NOT NULL,
    place       TEXT NOT NULL,    -- its display name
    state       INTEGER NOT NULL, -- a change of this number ends an acknowledgement
    since       INTEGER NOT NULL, -- first time that it came
    came        INTEGER NOT NULL, -- last time that it came
    gone        INTEGER NOT NULL, -- when it went; 0: it is present
    comings     INTEGER NOT NULL, -- number of times that it came
    acked       INTEGER NOT NULL, -- when it was acknowledged; 0: not acknowledged
    acked_until INTEGER NOT NULL, -- 0: until it changes
    acked_by    INTEGER NOT NULL  -- uid
) STRICT;
