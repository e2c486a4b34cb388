-- The number of running projectors.
SELECT count(*)
  FROM pg_locks
 WHERE locktype = 'advisory'
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND classid = %(space)s
   AND objid = %(key)s
   AND granted;
