-- Sessions that should be moving, those without changes for longest first.
SELECT tenant, session_id, seq, owner IS NOT NULL
  FROM projection.session
 WHERE (work_requested AND (pending > 0 OR owed) OR interrupted OR owner IS NOT NULL)
   AND (wake_at IS NULL OR wake_at <= %(now)s)
   AND broken IS NULL
   AND (interrupted OR NOT (waiting AND owner IS NULL))
 ORDER BY updated_at
 LIMIT %(limit)s;
