-- Messages before a seq, newest first.
SELECT message
  FROM read.session_message
 WHERE tenant = %(tenant)s AND session_id = %(session_id)s AND seq < %(after)s
 ORDER BY seq DESC
 LIMIT %(limit)s;
