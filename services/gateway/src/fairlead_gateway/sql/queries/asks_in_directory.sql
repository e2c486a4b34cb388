-- The pending asks of a directory, oldest first, found by the sessions of the directory that have some.
SELECT ask.request
  FROM read.session AS session
  JOIN read.session_ask AS ask USING (tenant, session_id)
 WHERE session.tenant = %(tenant)s
   AND md5(session.directory) = md5(%(directory)s)
   AND session.directory = %(directory)s
   AND session.asks > 0
   AND ask.kind = %(kind)s
 ORDER BY ask.asked_at, ask.request_id
 LIMIT %(limit)s;
