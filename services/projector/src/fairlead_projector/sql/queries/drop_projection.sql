-- Drops all tables of the projector. A rebuild makes them again from the log.
DROP SCHEMA IF EXISTS projection CASCADE;
