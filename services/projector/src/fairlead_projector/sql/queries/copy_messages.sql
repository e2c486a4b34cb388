-- Adds messages. The store has looked for them: the table has none of them.
COPY projection.session_message (tenant, session_id, message_id, seq, type, message)
FROM STDIN;
