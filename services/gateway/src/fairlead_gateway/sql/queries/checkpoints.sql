-- How far each shard of the log is projected.
SELECT shard, position FROM read.checkpoint ORDER BY shard;
