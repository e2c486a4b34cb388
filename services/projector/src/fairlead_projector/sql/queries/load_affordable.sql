-- Sessions that rest over a budget although their own budget and their tenant's allow more now.
-- The reason is a literal because the partial index session_over_budget has the same literal.
WITH resting AS (
    SELECT tenant, session_id, seq, cost, budget_cost, budget_tokens,
           (tokens ->> 'input')::bigint + (tokens ->> 'output')::bigint
         + (tokens ->> 'reasoning')::bigint + (tokens -> 'cache' ->> 'read')::bigint
         + (tokens -> 'cache' ->> 'write')::bigint AS used
      FROM projection.session
     WHERE rested = 'over-budget'
       AND owner IS NULL
       AND broken IS NULL
), total AS (
    SELECT tenant, sum(cost) AS cost, sum(tokens) AS tokens
      FROM projection.tenant_total
     WHERE tenant IN (SELECT tenant FROM resting)
     GROUP BY tenant
)
SELECT resting.tenant, resting.session_id, resting.seq
  FROM resting
  JOIN total USING (tenant)
  LEFT JOIN unnest(%(tenants)s::text[], %(costs)s::double precision[], %(tokens)s::bigint[])
    AS allowed (tenant, cost, tokens) USING (tenant)
 WHERE (budget_cost IS NULL OR resting.cost < budget_cost)
   AND (budget_tokens IS NULL OR resting.used < budget_tokens)
   AND (allowed.cost IS NULL OR total.cost < allowed.cost)
   AND (allowed.tokens IS NULL OR total.tokens < allowed.tokens)
 LIMIT %(limit)s;
