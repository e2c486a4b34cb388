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
  FROM read.session_ask AS ask
  JOIN below USING (session_id)
 WHERE ask.tenant = %(tenant)s AND ask.kind = %(kind)s
 ORDER BY ask.asked_at, ask.request_id
 LIMIT %(limit)s;
