-- What a session used by model and through its sub-agents, and the files and lines that it changed.
-- Rows of earlier sessions count from here on; a rebuild counts everything.
ALTER TABLE projection.session
  ADD COLUMN models jsonb NOT NULL DEFAULT '[]',
  ADD COLUMN children jsonb NOT NULL DEFAULT '{"cost": 0, "tokens": 0}',
  ADD COLUMN file_changes jsonb NOT NULL DEFAULT '{}';

DROP VIEW read.session;
CREATE VIEW read.session AS SELECT * FROM projection.session;
