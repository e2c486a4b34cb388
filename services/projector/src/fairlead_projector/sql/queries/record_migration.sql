-- Records an applied migration with its checksum.
INSERT INTO public.fairlead_migration (number, name, checksum)
VALUES (%(number)s, %(name)s, %(checksum)s);
