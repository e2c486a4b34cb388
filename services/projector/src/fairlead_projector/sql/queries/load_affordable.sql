-- A page of the sessions of a tenant that rest over a budget although their own budget allows more.
-- The reason is a literal, and the condition repeats that of the index session_affordable.
SELECT tenant, session_id, seq, position
  FROM projection.session
 WHERE tenant = %(tenant)s
   AND session_id > %(session_id)s
   AND rested = 'over-budget'
   AND owner IS NULL
   AND broken IS NULL
   AND (budget_cost IS NULL OR cost < budget_cost)
   AND (budget_tokens IS NULL
        OR (tokens ->> 'input')::numeric + (tokens ->> 'output')::numeric
         + (tokens ->> 'reasoning')::numeric + (tokens -> 'cache' ->> 'read')::numeric
         + (tokens -> 'cache' ->> 'write')::numeric < budget_tokens)
 ORDER BY tenant, session_id
 LIMIT %(limit)s;
