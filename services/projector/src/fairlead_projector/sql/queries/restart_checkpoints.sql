-- Moves every checkpoint back to the beginning of a restored log, once. This fences all writers.
WITH other AS (
    SELECT shard
      FROM projection.checkpoint
     WHERE incarnation IS DISTINCT FROM %(incarnation)s
     ORDER BY shard
       FOR UPDATE
)
UPDATE projection.checkpoint AS checkpoint
   SET position = 0,
       incarnation = %(incarnation)s,
       digest = NULL
  FROM other
 WHERE checkpoint.shard = other.shard;
