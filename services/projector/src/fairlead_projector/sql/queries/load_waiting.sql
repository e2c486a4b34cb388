-- Every pending ask, with the project whose approvals may answer it. Leaves out broken sessions,
-- because nobody can answer their asks.
SELECT ask.tenant, ask.session_id, ask.request_id, ask.kind, session.project_id, ask.asked_at,
       ask.request ->> 'action' AS action, ask.request -> 'resources' AS resources
  FROM projection.session_ask AS ask
  JOIN projection.session AS session USING (tenant, session_id)
 WHERE session.broken IS NULL
 ORDER BY ask.asked_at
 LIMIT %(limit)s;
