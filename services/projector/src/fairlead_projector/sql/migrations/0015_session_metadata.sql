-- What callers note about a session.
ALTER TABLE projection.session
  ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}';

DROP VIEW read.session;
CREATE VIEW read.session AS SELECT * FROM projection.session;
