-- A statement that waits for a lock longer than this fails, because everybody else waits behind it.
SET LOCAL lock_timeout = '2s';
