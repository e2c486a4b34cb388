-- Appends events. The checkpoint guarantees that they are new.
COPY projection.session_event (tenant, session_id, seq, event_id, type, version, time, data)
FROM STDIN;
