-- Runs outside a transaction.
-- Lists leave archived sessions out, and show the children of one session or none. Each kind of list has
-- an index in its order, so that many sessions of another kind cost a page nothing.
CREATE INDEX CONCURRENTLY IF NOT EXISTS session_listed
    ON projection.session (tenant, created_at, session_id)
 WHERE archived_at IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS session_listed_root
    ON projection.session (tenant, created_at, session_id)
 WHERE archived_at IS NULL AND parent_id IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS session_archived
    ON projection.session (tenant, created_at, session_id)
 WHERE archived_at IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS session_by_parent
    ON projection.session (tenant, parent_id, created_at, session_id)
 WHERE parent_id IS NOT NULL;

-- The sessions that somebody asked to work and that no runner has taken yet.
CREATE INDEX CONCURRENTLY IF NOT EXISTS session_asked_for
    ON projection.session (tenant, session_id)
 WHERE owner IS NULL AND work_requested AND pending > 0 AND wake_at IS NULL AND NOT waiting AND broken IS NULL;

ANALYZE projection.session;
