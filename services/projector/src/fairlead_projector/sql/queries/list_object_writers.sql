-- The functions that write large objects, which every role may call in a new database.
SELECT oid::regprocedure::text
  FROM pg_proc
 WHERE pronamespace = 'pg_catalog'::regnamespace
   AND proname IN ('lo_creat', 'lo_create', 'lo_from_bytea', 'lo_put', 'lowrite', 'lo_truncate', 'lo_truncate64')
 ORDER BY 1;
