-- The pending inputs of sessions.
SELECT input.tenant, input.session_id, input.message_id, input.admitted_seq
  FROM unnest(%(tenants)s::text[], %(session_ids)s::text[]) AS wanted (tenant, session_id)
 CROSS JOIN LATERAL (
       SELECT *
         FROM projection.session_input AS input
        WHERE input.tenant = wanted.tenant
          AND input.session_id = wanted.session_id
          AND input.promoted_seq IS NULL
          AND NOT input.cancelled
       OFFSET 0
       ) AS input
 ORDER BY input.admitted_seq;
