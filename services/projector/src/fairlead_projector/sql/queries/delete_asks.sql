-- Removes the asks that a batch answers.
DELETE FROM projection.session_ask AS ask
 USING jsonb_to_recordset(%(rows)s::jsonb) AS row (tenant text, session_id text, request_id text)
 WHERE ask.tenant = row.tenant
   AND ask.session_id = row.session_id
   AND ask.request_id = row.request_id;
