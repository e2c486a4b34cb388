-- The tenants that allow more and have sessions that rest over a budget. The index session_affordable
-- gives one row for each tenant, however many sessions rest. Its condition is repeated here.
WITH RECURSIVE resting (tenant) AS (
    SELECT min(tenant)
      FROM projection.session
     WHERE rested = 'over-budget'
       AND owner IS NULL
       AND broken IS NULL
       AND (budget_cost IS NULL OR cost < budget_cost)
       AND (budget_tokens IS NULL
            OR (tokens ->> 'input')::numeric + (tokens ->> 'output')::numeric
             + (tokens ->> 'reasoning')::numeric + (tokens -> 'cache' ->> 'read')::numeric
             + (tokens -> 'cache' ->> 'write')::numeric < budget_tokens)
     UNION ALL
    SELECT (SELECT min(session.tenant)
              FROM projection.session
             WHERE session.tenant > resting.tenant
               AND rested = 'over-budget'
               AND owner IS NULL
               AND broken IS NULL
               AND (budget_cost IS NULL OR cost < budget_cost)
               AND (budget_tokens IS NULL
                    OR (tokens ->> 'input')::numeric + (tokens ->> 'output')::numeric
                     + (tokens ->> 'reasoning')::numeric + (tokens -> 'cache' ->> 'read')::numeric
                     + (tokens -> 'cache' ->> 'write')::numeric < budget_tokens))
      FROM resting
     WHERE resting.tenant IS NOT NULL
)
SELECT resting.tenant
  FROM resting
 CROSS JOIN LATERAL (
       SELECT sum(cost) AS cost, sum(tokens) AS tokens
         FROM projection.tenant_total
        WHERE tenant_total.tenant = resting.tenant
       ) AS total
  LEFT JOIN unnest(%(tenants)s::text[], %(costs)s::double precision[], %(tokens)s::bigint[])
    AS allowed (tenant, cost, tokens) ON allowed.tenant = resting.tenant
 WHERE resting.tenant IS NOT NULL
   AND (allowed.cost IS NULL OR total.cost < allowed.cost)
   AND (allowed.tokens IS NULL OR total.tokens < allowed.tokens);
