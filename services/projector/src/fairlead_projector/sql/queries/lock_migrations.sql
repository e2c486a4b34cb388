-- One process migrates at a time; the others wait here until its transaction ends.
SELECT pg_advisory_xact_lock(%(space)s, %(key)s);
