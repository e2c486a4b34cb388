-- How far a shard has been projected.
SELECT position
  FROM projection.checkpoint
 WHERE shard = %(shard)s;
