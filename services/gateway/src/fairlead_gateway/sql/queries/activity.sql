-- What the turns since a time have used, in the sessions that changed since then.
SELECT count(*) AS turns,
       coalesce(sum((message.message ->> 'cost')::double precision), 0) AS cost,
       coalesce(sum((message.message #>> '{tokens,input}')::bigint
                  + (message.message #>> '{tokens,output}')::bigint
                  + (message.message #>> '{tokens,reasoning}')::bigint
                  + (message.message #>> '{tokens,cache,read}')::bigint
                  + (message.message #>> '{tokens,cache,write}')::bigint), 0)::bigint AS tokens
  FROM read.session AS session
  JOIN read.session_message AS message USING (tenant, session_id)
 WHERE session.tenant = %(tenant)s
   AND session.updated_at >= %(since)s
   AND message.type = 'assistant'
   AND (message.message #>> '{time,created}')::bigint >= %(since)s;
