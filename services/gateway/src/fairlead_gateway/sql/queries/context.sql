-- What the model sees: the messages from the newest compaction on; of system messages those of the epoch
-- in force, which while no new baseline could be made are older than the compaction.
SELECT message
  FROM read.session_message
 WHERE tenant = %(tenant)s AND session_id = %(session_id)s
   AND seq > CASE type
       WHEN 'system' THEN
            (SELECT coalesce(max(seq), 0)
               FROM read.session_event
              WHERE tenant = %(tenant)s AND session_id = %(session_id)s
                AND type IN ('context.initialised', 'context.replaced'))
       ELSE (SELECT coalesce(max(seq), 0) - 1
               FROM read.session_message
              WHERE tenant = %(tenant)s AND session_id = %(session_id)s AND type = 'compaction')
       END
 ORDER BY seq;
