-- The pending asks of all descendants of a session, oldest first.
WITH RECURSIVE below AS (
    SELECT session_id
      FROM read.session
     WHERE tenant = %(tenant)s AND parent_id = %(session_id)s
     UNION
    SELECT child.session_id
      FROM read.session AS child
      JOIN below ON child.parent_id = below.session_id
     WHERE child.tenant = %(tenant)s
)
SELECT ask.request
  FROM below
 CROSS JOIN LATERAL (
       SELECT request, asked_at, request_id
         FROM read.session_ask
        WHERE session_ask.tenant = %(tenant)s
          AND session_ask.session_id = below.session_id
          AND session_ask.kind = %(kind)s
       OFFSET 0
       ) AS ask
 ORDER BY ask.asked_at, ask.request_id
 LIMIT %(limit)s;
