-- The rows of the sessions of a batch. OFFSET 0 keeps Postgres from reading the whole table for a batch.
SELECT session.*
  FROM unnest(%(tenants)s::text[], %(session_ids)s::text[]) AS wanted (tenant, session_id)
 CROSS JOIN LATERAL (
       SELECT *
         FROM projection.session AS session
        WHERE session.tenant = wanted.tenant
          AND session.session_id = wanted.session_id
       OFFSET 0
       ) AS session;
