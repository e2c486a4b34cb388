-- After a drop no migration is applied.
DELETE FROM public.fairlead_migration;
