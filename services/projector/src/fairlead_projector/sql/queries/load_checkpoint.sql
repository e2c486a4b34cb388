-- The position up to which a shard is projected, and the log that it belongs to.
SELECT position, incarnation, digest
  FROM projection.checkpoint
 WHERE shard = %(shard)s;
