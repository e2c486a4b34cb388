-- Runs outside a transaction.
-- A terminal client that connects again is told of the sessions that changed while it was away.
CREATE INDEX CONCURRENTLY IF NOT EXISTS session_changed
    ON projection.session (tenant, updated_at)
 WHERE archived_at IS NULL;
