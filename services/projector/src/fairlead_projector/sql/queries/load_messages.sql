-- The messages that a batch names.
SELECT message.tenant, message.session_id, message.seq, message.message::text AS message
  FROM unnest(%(tenants)s::text[], %(session_ids)s::text[], %(message_ids)s::text[])
       AS wanted (tenant, session_id, message_id)
 CROSS JOIN LATERAL (
       SELECT *
         FROM projection.session_message AS message
        WHERE message.tenant = wanted.tenant
          AND message.session_id = wanted.session_id
          AND message.message_id = wanted.message_id
       OFFSET 0
       ) AS message;
