-- Counts this connection as a running projector for as long as it lives.
SELECT pg_advisory_lock_shared(%(space)s, %(key)s);
