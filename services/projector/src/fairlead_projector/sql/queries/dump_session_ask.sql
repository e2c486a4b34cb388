-- All rows of session_ask in key order, whatever the database's collation.
COPY (
    SELECT *
      FROM projection.session_ask
     ORDER BY tenant COLLATE "C", session_id COLLATE "C", request_id COLLATE "C"
) TO STDOUT;
