-- Removes all rows of the read models except the checkpoints.
WITH events AS (DELETE FROM projection.session_event),
     messages AS (DELETE FROM projection.session_message),
     asks AS (DELETE FROM projection.session_ask),
     inputs AS (DELETE FROM projection.session_input),
     tenants AS (DELETE FROM projection.tenant_total),
     principals AS (DELETE FROM projection.principal_total)
DELETE FROM projection.session;
