-- All rows of checkpoint in key order, whatever the database's collation.
COPY (
    SELECT *
      FROM projection.checkpoint
     ORDER BY shard
) TO STDOUT;
