-- Appends events; they are new by construction.
COPY projection.session_event (tenant, session_id, seq, event_id, type, version, time, data)
FROM STDIN;
