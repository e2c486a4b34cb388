-- The messages of the next turn: those since the newest compaction. System messages count from the
-- start of the current epoch, which is older than the compaction if no new baseline could be made.
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
