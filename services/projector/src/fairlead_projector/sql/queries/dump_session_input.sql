-- All rows of session_input in key order, whatever the database's collation.
COPY (
    SELECT *
      FROM projection.session_input
     ORDER BY tenant COLLATE "C", session_id COLLATE "C", message_id COLLATE "C"
) TO STDOUT;
