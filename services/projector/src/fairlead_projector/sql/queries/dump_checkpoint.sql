-- All checkpoints in key order. Which log they belong to is no part of the read models.
COPY (
    SELECT shard, position
      FROM projection.checkpoint
     ORDER BY shard
) TO STDOUT;
