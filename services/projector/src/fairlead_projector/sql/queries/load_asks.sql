-- The pending asks of sessions.
SELECT ask.tenant, ask.session_id, ask.request_id, ask.message_id, ask.call_id
  FROM unnest(%(tenants)s::text[], %(session_ids)s::text[]) AS wanted (tenant, session_id)
  JOIN projection.session_ask AS ask USING (tenant, session_id)
 ORDER BY ask.seq;
