-- Whether the read models are there.
SELECT count(*) FROM (SELECT 1 FROM read.checkpoint LIMIT 1) AS found;
