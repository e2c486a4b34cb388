-- Changes inputs that an earlier batch admitted. An absent column stays as it is.
UPDATE projection.session_input AS input
   SET promoted_seq = coalesce(row.promoted_seq, input.promoted_seq),
       cancelled = coalesce(row.cancelled, input.cancelled),
       delivery = coalesce(row.delivery, input.delivery),
       prompt = coalesce(row.prompt, input.prompt)
  FROM jsonb_to_recordset(%(rows)s::jsonb) AS row (
       tenant text, session_id text, message_id text, promoted_seq bigint, cancelled boolean,
       delivery text, prompt jsonb)
 WHERE input.tenant = row.tenant
   AND input.session_id = row.session_id
   AND input.message_id = row.message_id;
