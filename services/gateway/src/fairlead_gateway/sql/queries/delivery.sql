-- The delivery of one input.
SELECT delivery
  FROM read.session_input
 WHERE tenant = %(tenant)s AND session_id = %(session_id)s AND message_id = %(message_id)s;
