-- How many sessions of a tenant run, wait for people, or are broken, and how many asks wait.
SELECT count(*) FILTER (WHERE owner IS NOT NULL AND broken IS NULL) AS running,
       count(*) FILTER (WHERE asks > 0) AS waiting,
       coalesce(sum(asks), 0)::bigint AS asks,
       count(*) FILTER (WHERE broken IS NOT NULL) AS broken
  FROM read.session
 WHERE tenant = %(tenant)s
   AND archived_at IS NULL
   AND (owner IS NOT NULL OR asks > 0 OR broken IS NOT NULL);
