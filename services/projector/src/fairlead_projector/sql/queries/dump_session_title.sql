-- All rows of session_title in key order, whatever the database's collation.
COPY (
    SELECT *
      FROM projection.session_title
     ORDER BY tenant COLLATE "C", session_id COLLATE "C"
) TO STDOUT;
