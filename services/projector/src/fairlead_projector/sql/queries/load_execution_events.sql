-- The events that change the execution of sessions, oldest first.
SELECT event.tenant, event.session_id, event.event_id AS id, event.seq, event.type, event.version,
       event.time, event.data
  FROM unnest(%(tenants)s::text[], %(session_ids)s::text[]) AS wanted (tenant, session_id)
  JOIN projection.session_event AS event USING (tenant, session_id)
 WHERE event.type = ANY (%(types)s::text[])
 ORDER BY event.seq;
