-- The sessions that a runner owns now.
SELECT session_id
  FROM read.session
 WHERE tenant = %(tenant)s AND owner IS NOT NULL
 ORDER BY session_id;
