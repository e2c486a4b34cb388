-- The pending asks of a tenant, oldest first.
SELECT request
  FROM read.session_ask
 WHERE tenant = %(tenant)s
   AND kind = %(kind)s
 ORDER BY asked_at, request_id
 LIMIT %(limit)s;
