-- The pending asks of sessions.
SELECT ask.tenant, ask.session_id, ask.request_id, ask.message_id, ask.call_id
  FROM unnest(%(tenants)s::text[], %(session_ids)s::text[]) AS wanted (tenant, session_id)
 CROSS JOIN LATERAL (
       SELECT *
         FROM projection.session_ask AS ask
        WHERE ask.tenant = wanted.tenant
          AND ask.session_id = wanted.session_id
       OFFSET 0
       ) AS ask
 ORDER BY ask.seq;
