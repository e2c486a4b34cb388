-- The indexes whose concurrent build was cut off. Postgres keeps them and never uses them.
SELECT class.relname
  FROM pg_index AS index
  JOIN pg_class AS class ON class.oid = index.indexrelid
 WHERE class.relnamespace = 'projection'::regnamespace
   AND NOT index.indisvalid;
