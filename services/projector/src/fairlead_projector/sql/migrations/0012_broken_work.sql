-- Nobody can end the work of a broken session, so it counts as running no more.
INSERT INTO projection.tenant_total AS total (tenant, shard, turns, calls)
SELECT tenant, -1, -count(owner), -sum(jsonb_array_length(started_calls))
  FROM projection.session
 WHERE broken IS NOT NULL
   AND (owner IS NOT NULL OR started_calls <> '[]')
 GROUP BY tenant
    ON CONFLICT (tenant, shard) DO UPDATE
   SET turns = total.turns + excluded.turns,
       calls = total.calls + excluded.calls;

INSERT INTO projection.principal_total AS total (tenant, principal, shard, turns, calls)
SELECT tenant, created_by, -1, -count(owner), -sum(jsonb_array_length(started_calls))
  FROM projection.session
 WHERE broken IS NOT NULL
   AND created_by IS NOT NULL
   AND (owner IS NOT NULL OR started_calls <> '[]')
 GROUP BY tenant, created_by
    ON CONFLICT (tenant, principal, shard) DO UPDATE
   SET turns = total.turns + excluded.turns,
       calls = total.calls + excluded.calls;
