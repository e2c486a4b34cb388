-- Removes the totals of principals whose last session was purged: a rebuild does not know them.
DELETE FROM projection.principal_total AS total
 USING jsonb_to_recordset(%(rows)s::jsonb) AS row (
       tenant text, principal text, shard integer)
 WHERE total.tenant = row.tenant
   AND total.principal = row.principal
   AND total.shard = row.shard
   AND total.sessions = 0
   AND total.turns = 0
   AND total.calls = 0;
