-- The rows of the sessions of a batch.
SELECT session.*
  FROM unnest(%(tenants)s::text[], %(session_ids)s::text[]) AS wanted (tenant, session_id)
  JOIN projection.session AS session USING (tenant, session_id);
