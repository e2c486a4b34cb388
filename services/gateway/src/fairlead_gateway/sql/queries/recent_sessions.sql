-- The sessions of a tenant with an event since a time, the newest one first. A session row has the time of
-- its last finished step, so that the newest event of each candidate is looked at, one after the other.
SELECT candidate.session_id
  FROM (SELECT tenant, session_id, seq
          FROM read.session
         WHERE tenant = %(tenant)s
           AND archived_at IS NULL
         ORDER BY updated_at DESC
         LIMIT %(candidates)s) AS candidate
 CROSS JOIN LATERAL (
       SELECT event.time
         FROM read.session_event AS event
        WHERE event.tenant = candidate.tenant
          AND event.session_id = candidate.session_id
          AND event.seq = candidate.seq
        LIMIT 1) AS newest
 WHERE newest.time >= %(since)s
 ORDER BY newest.time DESC
 LIMIT %(limit)s;
