-- The readers' views go first; they stand on the tables.
DROP SCHEMA IF EXISTS read CASCADE;
