-- The record of applied migrations. A rebuild drops the other schemas and keeps this table.
CREATE TABLE IF NOT EXISTS public.fairlead_migration (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
