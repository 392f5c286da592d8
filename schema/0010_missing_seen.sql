-- When a missing object was seen last, microseconds since 1970; since is the first sweep that did not see it.
-- 0: not known, for objects that were missing before this version.
ALTER TABLE missing ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
