-- The seq of the event that created one message.
SELECT seq
  FROM read.session_message
 WHERE tenant = %(tenant)s AND session_id = %(session_id)s AND message_id = %(message_id)s;
