-- The pool whose workers serve a session. NULL is the default pool.
ALTER TABLE projection.session
  ADD COLUMN pool text;

DROP VIEW read.session;
CREATE VIEW read.session AS SELECT * FROM projection.session;
