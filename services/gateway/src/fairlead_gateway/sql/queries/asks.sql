-- The pending asks of a tenant, oldest first. Directory NULL means every directory.
SELECT ask.request
  FROM read.session_ask AS ask
  JOIN read.session AS session USING (tenant, session_id)
 WHERE ask.tenant = %(tenant)s
   AND ask.kind = %(kind)s
   AND (%(directory)s::text IS NULL OR session.directory = %(directory)s)
 ORDER BY ask.asked_at, ask.request_id
 LIMIT %(limit)s;
