-- The usage of all sessions of a tenant.
SELECT coalesce(sum(cost), 0),
       coalesce(sum((tokens ->> 'input')::bigint + (tokens ->> 'output')::bigint
                  + (tokens ->> 'reasoning')::bigint + (tokens -> 'cache' ->> 'read')::bigint
                  + (tokens -> 'cache' ->> 'write')::bigint), 0)
  FROM projection.session
 WHERE tenant = %(tenant)s;
