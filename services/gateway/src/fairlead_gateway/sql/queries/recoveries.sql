-- The newest recovery of each session of a tenant that changed since a time and was recovered.
SELECT session.session_id, event.time, event.data ->> 'action' AS action,
       event.data ->> 'detail' AS detail
  FROM read.session AS session
  JOIN LATERAL (
       SELECT recovered.time, recovered.data
         FROM read.session_event AS recovered
        WHERE recovered.tenant = session.tenant
          AND recovered.session_id = session.session_id
          AND recovered.type = 'execution.recovered'
        ORDER BY recovered.seq DESC
        LIMIT 1) AS event ON true
 WHERE session.tenant = %(tenant)s
   AND session.updated_at >= %(since)s
   AND (session.execution ->> 'recoveries')::integer > 0
 ORDER BY event.time DESC
 LIMIT %(limit)s;
