-- The pending asks of a tenant, newest first, each with its session and the session's newest answer.
SELECT ask.kind, ask.request, ask.asked_at, session.title, session.directory, session.agent,
       session.parent_id, newest.message AS newest
  FROM read.session_ask AS ask
  JOIN read.session AS session USING (tenant, session_id)
  LEFT JOIN LATERAL (
       SELECT message.message
         FROM read.session_message AS message
        WHERE message.tenant = ask.tenant
          AND message.session_id = ask.session_id
          AND message.type = 'assistant'
        ORDER BY message.seq DESC
        LIMIT 1) AS newest ON true
 WHERE ask.tenant = %(tenant)s
 ORDER BY ask.asked_at DESC, ask.request_id
 LIMIT %(limit)s;
