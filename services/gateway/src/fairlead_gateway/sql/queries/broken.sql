-- The sessions of a tenant whose projection stopped, newest first.
SELECT session_id, broken AS reason, updated_at AS time
  FROM read.session
 WHERE tenant = %(tenant)s AND broken IS NOT NULL
 ORDER BY updated_at DESC
 LIMIT %(limit)s;
