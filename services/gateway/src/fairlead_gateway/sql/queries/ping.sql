-- Checks that the read models exist.
SELECT count(*) FROM (SELECT 1 FROM read.checkpoint LIMIT 1) AS found;
