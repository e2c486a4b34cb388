-- The file that holds a stored session. NULL: the session is in the log.
ALTER TABLE projection.session
  ADD COLUMN stored jsonb,
  DROP CONSTRAINT session_seq_check,
  -- The rows that are here have a seq. To look at all of them would hold up a large table.
  ADD CONSTRAINT session_seq_check CHECK (seq > 0 OR stored IS NOT NULL) NOT VALID;

DROP VIEW read.session;
CREATE VIEW read.session AS SELECT * FROM projection.session;
