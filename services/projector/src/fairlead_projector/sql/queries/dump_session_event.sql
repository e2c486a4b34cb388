-- All rows of session_event in key order, whatever the database's collation.
COPY (
    SELECT *
      FROM projection.session_event
     ORDER BY tenant COLLATE "C", session_id COLLATE "C", seq
) TO STDOUT;
