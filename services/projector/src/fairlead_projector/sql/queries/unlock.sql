-- Releases an advisory lock of this connection.
SELECT pg_advisory_unlock(%(space)s, %(key)s);
