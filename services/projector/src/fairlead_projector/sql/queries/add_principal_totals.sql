-- Adds what a batch changes to the totals of principals. No other shard writes these rows.
INSERT INTO projection.principal_total AS total (
       tenant, principal, shard, sessions, log_bytes, pending, turns, calls)
SELECT tenant, principal, shard, sessions, log_bytes, pending, turns, calls
  FROM jsonb_to_recordset(%(rows)s::jsonb) AS row (
       tenant text, principal text, shard integer, sessions bigint, log_bytes bigint, pending bigint,
       turns bigint, calls bigint)
    ON CONFLICT (tenant, principal, shard) DO UPDATE
   SET sessions = total.sessions + excluded.sessions,
       log_bytes = total.log_bytes + excluded.log_bytes,
       pending = total.pending + excluded.pending,
       turns = total.turns + excluded.turns,
       calls = total.calls + excluded.calls;
