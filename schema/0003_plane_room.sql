-- Of plane.snapshot, so many bytes are the snapshot. Behind them is room, so that one that grows a little is
-- written in place. NULL: all bytes are.
ALTER TABLE plane ADD COLUMN size INTEGER;
