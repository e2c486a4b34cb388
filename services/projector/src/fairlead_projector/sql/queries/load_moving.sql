-- A page of the sessions that should be moving by now, after a key. The condition and the expression
-- repeat those of the index session_to_look_at, which keeps sessions that wait out of sight.
SELECT tenant, session_id, seq, position, owner,
       CASE WHEN interrupted THEN 0 ELSE coalesce(wake_at, 0) END AS look_at
  FROM projection.session
 WHERE broken IS NULL
   AND (interrupted OR owner IS NOT NULL OR work_requested AND (pending > 0 OR owed) AND NOT waiting)
   AND (CASE WHEN interrupted THEN 0 ELSE coalesce(wake_at, 0) END) <= %(now)s::bigint
   AND (CASE WHEN interrupted THEN 0 ELSE coalesce(wake_at, 0) END, tenant, session_id)
     > (%(look_at)s::bigint, %(tenant)s::text, %(session_id)s::text)
 ORDER BY CASE WHEN interrupted THEN 0 ELSE coalesce(wake_at, 0) END, tenant, session_id
 LIMIT %(limit)s;
