-- The position up to which a shard is projected.
SELECT position
  FROM projection.checkpoint
 WHERE shard = %(shard)s;
