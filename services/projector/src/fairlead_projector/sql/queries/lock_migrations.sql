-- Lets one process migrate at a time. The others wait until its transaction ends.
SELECT pg_advisory_xact_lock(%(space)s, %(key)s);
