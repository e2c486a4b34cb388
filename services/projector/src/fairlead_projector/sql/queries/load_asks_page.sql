-- A page of pending asks after a key, with the project whose approvals may answer a permission. Nobody
-- can answer the asks of a broken session.
SELECT page.tenant, page.session_id, page.request_id, page.kind, session.project_id, page.asked_at,
       page.action, page.resources, session.broken IS NOT NULL AS broken
  FROM (SELECT tenant, session_id, request_id, kind, asked_at, request ->> 'action' AS action,
               request -> 'resources' AS resources
          FROM projection.session_ask
         WHERE (tenant, session_id, request_id)
             > (%(tenant)s::text, %(session_id)s::text, %(request_id)s::text)
         ORDER BY tenant, session_id, request_id
         LIMIT %(limit)s) AS page
 CROSS JOIN LATERAL (
       SELECT project_id, broken
         FROM projection.session
        WHERE session.tenant = page.tenant
          AND session.session_id = page.session_id
       OFFSET 0
       ) AS session
 ORDER BY page.tenant, page.session_id, page.request_id;
