-- Adds the asks that a batch leaves pending.
INSERT INTO projection.session_ask (
       tenant, session_id, request_id, kind, seq, message_id, call_id, request, asked_at)
SELECT tenant, session_id, request_id, kind, seq, message_id, call_id, request, asked_at
  FROM jsonb_to_recordset(%(rows)s::jsonb) AS row (
       tenant text, session_id text, request_id text, kind text, seq bigint, message_id text,
       call_id text, request jsonb, asked_at bigint)
    ON CONFLICT (tenant, session_id, request_id) DO NOTHING;
