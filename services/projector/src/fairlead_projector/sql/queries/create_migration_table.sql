-- Where migrations are remembered; outside the schemas they make and a rebuild drops.
CREATE TABLE IF NOT EXISTS public.fairlead_migration (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
