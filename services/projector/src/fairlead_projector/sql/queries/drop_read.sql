-- Drops the views of the readers. They depend on the tables, so they go first.
DROP SCHEMA IF EXISTS read CASCADE;
