-- Remembers an applied migration and what it said.
INSERT INTO public.fairlead_migration (number, name, checksum)
VALUES (%(number)s, %(name)s, %(checksum)s);
