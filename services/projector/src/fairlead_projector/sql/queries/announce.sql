-- Says that a projector is present, for as long as this connection lives.
SELECT pg_advisory_lock_shared(%(space)s, %(key)s);
