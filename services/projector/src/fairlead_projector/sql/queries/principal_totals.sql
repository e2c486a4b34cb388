-- The totals of a principal over all shards. A principal without sessions has none.
SELECT coalesce(sum(sessions), 0)::bigint, coalesce(sum(log_bytes), 0)::bigint,
       coalesce(sum(pending), 0)::bigint, coalesce(sum(turns), 0)::bigint,
       coalesce(sum(calls), 0)::bigint
  FROM projection.principal_total
 WHERE tenant = %(tenant)s
   AND principal = %(principal)s;
