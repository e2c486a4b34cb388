-- The running turns and calls of the sessions that a principal created.
ALTER TABLE projection.principal_total ADD COLUMN turns bigint NOT NULL DEFAULT 0;
ALTER TABLE projection.principal_total ADD COLUMN calls bigint NOT NULL DEFAULT 0;

-- What runs now counts for no shard. It is taken back when it ends, whichever shard sees that.
INSERT INTO projection.principal_total (tenant, principal, shard, turns, calls)
SELECT tenant, created_by, -1, count(owner), sum(jsonb_array_length(started_calls))
  FROM projection.session
 WHERE created_by IS NOT NULL
   AND (owner IS NOT NULL OR started_calls <> '[]')
 GROUP BY tenant, created_by;

CREATE OR REPLACE VIEW read.principal_total AS
SELECT tenant, principal, sum(sessions)::bigint AS sessions, sum(log_bytes)::bigint AS log_bytes,
       sum(pending)::bigint AS pending, sum(turns)::bigint AS turns, sum(calls)::bigint AS calls
  FROM projection.principal_total
 GROUP BY tenant, principal;
