-- The migrations this database has seen.
SELECT number, name, checksum
  FROM public.fairlead_migration
 ORDER BY number;
