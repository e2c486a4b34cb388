-- The pending asks of a directory among the oldest ones of a tenant. For a directory with many asks,
-- this fills the list. OFFSET 0 keeps Postgres from reading all sessions.
SELECT ask.request
  FROM (SELECT *
          FROM read.session_ask
         WHERE tenant = %(tenant)s
           AND kind = %(kind)s
         ORDER BY asked_at, request_id
         LIMIT %(near)s) AS ask
 CROSS JOIN LATERAL (
       SELECT directory
         FROM read.session
        WHERE session.tenant = ask.tenant
          AND session.session_id = ask.session_id
       OFFSET 0
       ) AS session
 WHERE session.directory = %(directory)s
 ORDER BY ask.asked_at, ask.request_id
 LIMIT %(limit)s;
