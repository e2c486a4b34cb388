-- Moves the checkpoints of several shards. One that another writer moved is not among the answers: its
-- shard is fenced. The rows are locked in order, so that two writers never wait for each other.
WITH move AS (
    SELECT *
      FROM unnest(%(shards)s::integer[], %(afters)s::bigint[], %(positions)s::bigint[],
                  %(incarnations)s::text[], %(digests)s::text[])
        AS move (shard, after, position, incarnation, digest)
), unmoved AS (
    SELECT checkpoint.shard
      FROM projection.checkpoint AS checkpoint
      JOIN move ON move.shard = checkpoint.shard AND move.after = checkpoint.position
     ORDER BY checkpoint.shard
       FOR UPDATE OF checkpoint
)
UPDATE projection.checkpoint AS checkpoint
   SET position = move.position,
       incarnation = move.incarnation,
       digest = move.digest
  FROM move
  JOIN unmoved ON unmoved.shard = move.shard
 WHERE checkpoint.shard = move.shard
   AND checkpoint.position = move.after
RETURNING checkpoint.shard;
