-- Everything the projector ever wrote; the log has it all.
DROP SCHEMA IF EXISTS projection CASCADE;
