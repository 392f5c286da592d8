-- The number of bytes of plane.snapshot that are the snapshot. The room after them lets a snapshot grow a little in
-- place. NULL: all bytes.
ALTER TABLE plane ADD COLUMN size INTEGER;
