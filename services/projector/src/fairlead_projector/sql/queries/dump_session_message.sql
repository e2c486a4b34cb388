-- All rows of session_message in key order, whatever the database's collation.
COPY (
    SELECT *
      FROM projection.session_message
     ORDER BY tenant COLLATE "C", session_id COLLATE "C", message_id COLLATE "C"
) TO STDOUT;
