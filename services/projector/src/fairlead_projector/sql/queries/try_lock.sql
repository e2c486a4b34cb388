-- Tries to take an advisory lock, which ends with this connection.
SELECT pg_try_advisory_lock(%(space)s, %(key)s);
