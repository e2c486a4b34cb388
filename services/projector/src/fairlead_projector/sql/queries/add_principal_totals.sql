-- Adds what a batch changes to the totals of principals. No other shard writes these rows.
INSERT INTO projection.principal_total AS total (
       tenant, principal, shard, sessions, log_bytes, pending)
SELECT tenant, principal, %(shard)s, sessions, log_bytes, pending
  FROM jsonb_to_recordset(%(rows)s::jsonb) AS row (
       tenant text, principal text, sessions bigint, log_bytes bigint, pending bigint)
    ON CONFLICT (tenant, principal, shard) DO UPDATE
   SET sessions = total.sessions + excluded.sessions,
       log_bytes = total.log_bytes + excluded.log_bytes,
       pending = total.pending + excluded.pending;
