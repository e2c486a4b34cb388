-- The sessions that a runner owns now, and those with a prompt that a runner is about to take.
SELECT session_id
  FROM read.session
 WHERE tenant = %(tenant)s AND owner IS NOT NULL
 UNION ALL
SELECT session_id
  FROM read.session
 WHERE tenant = %(tenant)s
   AND owner IS NULL AND work_requested AND pending > 0 AND wake_at IS NULL AND NOT waiting AND broken IS NULL
 ORDER BY session_id;
