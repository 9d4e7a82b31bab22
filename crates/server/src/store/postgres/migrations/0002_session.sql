-- The context of a session, under which its tasks are found: one that still has tasks is not forgotten. What a release that
-- does not know of it has written since has none, and is forgotten by its age alone.
ALTER TABLE session ADD COLUMN context uuid;
UPDATE session AS s SET context = t.context FROM task AS t
WHERE t.scope = s.scope AND t.context_id = s.context_id COLLATE "C";
