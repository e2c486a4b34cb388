-- Adds what a batch changes to the totals of its tenants. No other shard writes these rows.
INSERT INTO projection.tenant_total AS total (
       tenant, shard, sessions, log_bytes, pending, turns, calls, cost, tokens)
SELECT tenant, shard, sessions, log_bytes, pending, turns, calls, cost, tokens
  FROM jsonb_to_recordset(%(rows)s::jsonb) AS row (
       tenant text, shard integer, sessions bigint, log_bytes bigint, pending bigint, turns bigint, calls bigint,
       cost numeric, tokens numeric)
    ON CONFLICT (tenant, shard) DO UPDATE
   SET sessions = total.sessions + excluded.sessions,
       log_bytes = total.log_bytes + excluded.log_bytes,
       pending = total.pending + excluded.pending,
       turns = total.turns + excluded.turns,
       calls = total.calls + excluded.calls,
       cost = total.cost + excluded.cost,
       tokens = total.tokens + excluded.tokens;
