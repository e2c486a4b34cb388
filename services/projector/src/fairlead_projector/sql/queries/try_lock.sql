-- Tries to become the one who does this work, for as long as this connection lives.
SELECT pg_try_advisory_lock(%(space)s, %(key)s);
