-- The migrations that this database has applied.
SELECT number, name, checksum
  FROM public.fairlead_migration
 ORDER BY number;
