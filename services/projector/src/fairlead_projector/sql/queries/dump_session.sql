-- All rows of session in key order, whatever the database's collation.
COPY (
    SELECT *
      FROM projection.session
     ORDER BY tenant COLLATE "C", session_id COLLATE "C"
) TO STDOUT;
