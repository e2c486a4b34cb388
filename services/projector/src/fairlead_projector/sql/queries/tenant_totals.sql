-- The totals of a tenant over all shards. A tenant without sessions has none.
SELECT coalesce(sum(cost), 0), coalesce(sum(tokens), 0), coalesce(sum(sessions), 0)::bigint,
       coalesce(sum(log_bytes), 0)::bigint, coalesce(sum(turns), 0)::bigint,
       coalesce(sum(calls), 0)::bigint, coalesce(sum(pending), 0)::bigint
  FROM projection.tenant_total
 WHERE tenant = %(tenant)s;
