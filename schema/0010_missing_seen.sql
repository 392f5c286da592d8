-- When what is missing was there last, microseconds since 1970; since is when the first sweep did not see it.
-- 0: not known, of what was missing before.
ALTER TABLE missing ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
