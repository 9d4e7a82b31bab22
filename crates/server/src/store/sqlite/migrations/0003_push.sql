-- How far a webhook has come, beyond its cursor: raised by every replacement and replay; since when
-- its attempts fail; the state that its receiver was told last; and the events that were given up.
ALTER TABLE push ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE push ADD COLUMN since INTEGER;
ALTER TABLE push ADD COLUMN told INTEGER;
ALTER TABLE push ADD COLUMN dead_from INTEGER;
ALTER TABLE push ADD COLUMN dead_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE push ADD COLUMN dead_at INTEGER;

CREATE INDEX push_by_dead ON push (dead_at) WHERE dead_at IS NOT NULL;
