-- The pending inputs of sessions.
SELECT input.tenant, input.session_id, input.message_id, input.admitted_seq
  FROM unnest(%(tenants)s::text[], %(session_ids)s::text[]) AS wanted (tenant, session_id)
  JOIN projection.session_input AS input USING (tenant, session_id)
 WHERE input.promoted_seq IS NULL
   AND NOT input.cancelled
 ORDER BY input.admitted_seq;
