-- The messages that a batch names.
SELECT message.tenant, message.session_id, message.seq, message.message::text AS message
  FROM unnest(%(tenants)s::text[], %(session_ids)s::text[], %(message_ids)s::text[])
       AS wanted (tenant, session_id, message_id)
  JOIN projection.session_message AS message USING (tenant, session_id, message_id);
