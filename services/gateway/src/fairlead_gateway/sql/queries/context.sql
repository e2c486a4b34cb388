-- The messages from the newest compaction on.
SELECT message
  FROM read.session_message
 WHERE tenant = %(tenant)s AND session_id = %(session_id)s
   AND seq >= (SELECT coalesce(max(seq), 0)
                 FROM read.session_message
                WHERE tenant = %(tenant)s AND session_id = %(session_id)s AND type = 'compaction')
 ORDER BY seq;
