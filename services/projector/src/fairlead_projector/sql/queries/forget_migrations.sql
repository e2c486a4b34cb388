-- Forgets all migrations, because their tables were dropped.
DELETE FROM public.fairlead_migration;
