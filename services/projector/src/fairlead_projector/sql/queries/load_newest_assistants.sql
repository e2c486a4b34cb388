-- The newest assistant message of each session. The next step may have to complete it.
SELECT wanted.tenant, wanted.session_id, newest.seq, newest.message
  FROM unnest(%(tenants)s::text[], %(session_ids)s::text[]) AS wanted (tenant, session_id)
 CROSS JOIN LATERAL (
       SELECT message.seq, message.message::text AS message
         FROM projection.session_message AS message
        WHERE message.tenant = wanted.tenant
          AND message.session_id = wanted.session_id
          AND message.type = 'assistant'
        ORDER BY message.seq DESC
        LIMIT 1
       ) AS newest;
