-- Tries to take an advisory lock, which ends with this transaction.
SELECT pg_try_advisory_xact_lock(%(space)s, %(key)s);
