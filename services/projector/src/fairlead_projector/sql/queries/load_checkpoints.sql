-- How far every shard has been projected.
SELECT shard, position
  FROM projection.checkpoint;
