-- All rows of principal_total in key order, whatever the database's collation.
COPY (
    SELECT *
      FROM projection.principal_total
     ORDER BY tenant COLLATE "C", principal COLLATE "C", shard
) TO STDOUT;
