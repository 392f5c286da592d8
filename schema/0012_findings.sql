-- What the operator does not wait for any more: it is no finding, and goes with its generation's history.
ALTER TABLE lost_node ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lost_cable ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;

-- What looks wrong, and what did so within the last hour. id: of the kind and what it is about (topo/changes/check.h),
-- as a signed number. Times are microseconds since 1970.
CREATE TABLE finding (
    id          INTEGER PRIMARY KEY,
    kind        TEXT NOT NULL,
    place       TEXT NOT NULL,    -- as it is called
    state       INTEGER NOT NULL, -- how bad it is: another number undoes an acknowledgement
    since       INTEGER NOT NULL, -- when it came first
    came        INTEGER NOT NULL, -- and last
    gone        INTEGER NOT NULL, -- when it went; 0: it is there
    comings     INTEGER NOT NULL, -- how often it came
    acked       INTEGER NOT NULL, -- when it was acknowledged; 0: it is not
    acked_until INTEGER NOT NULL, -- 0: until it changes
    acked_by    INTEGER NOT NULL  -- uid
) STRICT;
