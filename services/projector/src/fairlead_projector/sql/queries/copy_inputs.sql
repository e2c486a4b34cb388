-- Adds inputs of sessions that this process has projected from their first event: the table has none of them.
COPY projection.session_input (tenant, session_id, message_id, admitted_seq, promoted_seq, cancelled,
                               delivery, prompt, created_at)
FROM STDIN;
