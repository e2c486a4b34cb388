-- The positions up to which all shards are projected.
SELECT shard, position
  FROM projection.checkpoint;
