-- The totals of all tenants in key order, whatever the database's collation. Shards are added up,
-- because an upgraded database counts earlier rows for no shard.
COPY (
    SELECT tenant, sum(sessions), sum(log_bytes), sum(pending), sum(turns), sum(calls),
           trim_scale(sum(cost)), sum(tokens)
      FROM projection.tenant_total
     GROUP BY tenant
     ORDER BY tenant COLLATE "C"
) TO STDOUT;
