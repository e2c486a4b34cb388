-- Runs outside a transaction.
-- Every question about sessions and asks has an index that answers it in the order of the answer, so
-- that its cost does not grow with the number of sessions. Texts of any length enter an index as hashes.
INSERT INTO projection.session_title (tenant, session_id, created_at, title)
SELECT tenant, session_id, created_at, title
  FROM projection.session
    ON CONFLICT (tenant, session_id) DO NOTHING;

CREATE INDEX CONCURRENTLY IF NOT EXISTS session_title_pieces ON projection.session_title
 USING gin (read.title_pieces(tenant, title, 1));

CREATE INDEX CONCURRENTLY IF NOT EXISTS session_by_project
    ON projection.session (tenant, md5(project_id), created_at, session_id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS session_by_directory
    ON projection.session (tenant, md5(directory), created_at, session_id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS session_by_workspace
    ON projection.session (tenant, md5(workspace_id), created_at, session_id)
 WHERE workspace_id IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS session_owned
    ON projection.session (tenant, session_id)
 WHERE owner IS NOT NULL;

CREATE INDEX CONCURRENTLY IF NOT EXISTS session_with_asks
    ON projection.session (tenant, md5(directory))
 WHERE asks > 0;

-- The sessions that should move, by the time from which on they should. A session that waits for a
-- time stands behind those of now; one that waits for people is not here.
CREATE INDEX CONCURRENTLY IF NOT EXISTS session_to_look_at
    ON projection.session ((CASE WHEN interrupted THEN 0 ELSE coalesce(wake_at, 0) END), tenant, session_id)
 WHERE broken IS NULL
   AND (interrupted OR owner IS NOT NULL OR work_requested AND (pending > 0 OR owed) AND NOT waiting);

-- The sessions that rest over a budget although their own budget allows more.
CREATE INDEX CONCURRENTLY IF NOT EXISTS session_affordable
    ON projection.session (tenant, session_id)
 WHERE rested = 'over-budget'
   AND owner IS NULL
   AND broken IS NULL
   AND (budget_cost IS NULL OR cost < budget_cost)
   AND (budget_tokens IS NULL
        OR (tokens ->> 'input')::numeric + (tokens ->> 'output')::numeric
         + (tokens ->> 'reasoning')::numeric + (tokens -> 'cache' ->> 'read')::numeric
         + (tokens -> 'cache' ->> 'write')::numeric < budget_tokens);

CREATE INDEX CONCURRENTLY IF NOT EXISTS session_ask_by_kind
    ON projection.session_ask (tenant, kind, asked_at, request_id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS session_ask_by_age
    ON projection.session_ask (asked_at, tenant, session_id, request_id);

DROP INDEX CONCURRENTLY IF EXISTS projection.session_moving;
DROP INDEX CONCURRENTLY IF EXISTS projection.session_over_budget;
DROP INDEX CONCURRENTLY IF EXISTS projection.session_ask_by_time;

ANALYZE projection.session;
ANALYZE projection.session_title;
ANALYZE projection.session_ask;
