-- Which release found a session broken, so that another release tries it again.
ALTER TABLE projection.session ADD COLUMN broken_by text;
CREATE INDEX session_broken ON projection.session (tenant, session_id) WHERE broken IS NOT NULL;

DROP VIEW read.session;
CREATE VIEW read.session AS SELECT * FROM projection.session;

-- Which incarnation of the log a checkpoint belongs to, and a hash of the commit at its position.
-- Both show that the log was restored from an older backup.
ALTER TABLE projection.checkpoint ADD COLUMN incarnation text;
ALTER TABLE projection.checkpoint ADD COLUMN digest text;
