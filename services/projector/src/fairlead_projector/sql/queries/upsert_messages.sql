-- Writes messages. A revised message keeps the seq of the event that created it.
INSERT INTO projection.session_message (tenant, session_id, message_id, seq, type, message)
SELECT tenant, session_id, message_id, seq, message ->> 'type', message
  FROM jsonb_to_recordset(%(rows)s::jsonb) AS row (
       tenant text, session_id text, message_id text, seq bigint, message jsonb)
    ON CONFLICT (tenant, session_id, message_id) DO UPDATE
   SET message = excluded.message;
