-- Adds the inputs that a batch admits.
INSERT INTO projection.session_input (
       tenant, session_id, message_id, admitted_seq, promoted_seq, cancelled, delivery, prompt,
       created_at)
SELECT tenant, session_id, message_id, admitted_seq, promoted_seq, cancelled, delivery, prompt,
       created_at
  FROM jsonb_to_recordset(%(rows)s::jsonb) AS row (
       tenant text, session_id text, message_id text, admitted_seq bigint, promoted_seq bigint,
       cancelled boolean, delivery text, prompt jsonb, created_at bigint)
    ON CONFLICT (tenant, session_id, message_id) DO NOTHING;
