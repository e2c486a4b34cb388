-- The schemas, tables and views of the read models that another role than the migrator owns.
SELECT 'SCHEMA' AS kind, NULL AS space, nspname AS name
  FROM pg_namespace
 WHERE nspname IN ('projection', 'read') AND pg_get_userbyid(nspowner) <> %(owner)s
UNION ALL
SELECT CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, n.nspname, c.relname
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'v')
   AND (n.nspname IN ('projection', 'read') OR (n.nspname, c.relname) = ('public', 'fairlead_migration'))
   AND pg_get_userbyid(c.relowner) <> %(owner)s;
