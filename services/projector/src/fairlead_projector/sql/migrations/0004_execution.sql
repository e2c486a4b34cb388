-- The projector folds execution with the rules of the core, so its row keeps the core's value.
-- Rows of an earlier release have none: the projector folds it from their events when it needs it.
ALTER TABLE projection.session ADD COLUMN execution jsonb;
ALTER TABLE projection.session RENAME COLUMN stirring TO work_requested;

DROP VIEW read.session;
CREATE VIEW read.session AS SELECT * FROM projection.session;
