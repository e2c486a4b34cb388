-- A page of pending asks that are older than a time, after a key, oldest first.
SELECT page.tenant, page.session_id, page.request_id, page.kind, session.project_id, page.asked_at,
       NULL AS action, NULL AS resources, session.broken IS NOT NULL AS broken
  FROM (SELECT tenant, session_id, request_id, kind, asked_at
          FROM projection.session_ask
         WHERE asked_at < %(before)s::bigint
           AND (asked_at, tenant, session_id, request_id)
             > (%(asked_at)s::bigint, %(tenant)s::text, %(session_id)s::text, %(request_id)s::text)
         ORDER BY asked_at, tenant, session_id, request_id
         LIMIT %(limit)s) AS page
 CROSS JOIN LATERAL (
       SELECT project_id, broken
         FROM projection.session
        WHERE session.tenant = page.tenant
          AND session.session_id = page.session_id
       OFFSET 0
       ) AS session
 ORDER BY page.asked_at, page.tenant, page.session_id, page.request_id;
