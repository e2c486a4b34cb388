-- The stored sessions whose messages are in their files alone, by key.
SELECT tenant, session_id, stored
  FROM projection.session
 WHERE stored ->> 'lacksMessages' = 'true'
 ORDER BY tenant, session_id;
