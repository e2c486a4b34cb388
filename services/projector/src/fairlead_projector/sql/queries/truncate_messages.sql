-- A committed revert removes the messages after its boundary.
DELETE FROM projection.session_message
 WHERE tenant = %(tenant)s
   AND session_id = %(session_id)s
   AND seq > %(boundary_seq)s
   AND seq < %(revert_seq)s;
