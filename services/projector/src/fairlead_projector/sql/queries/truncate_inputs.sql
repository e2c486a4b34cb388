-- A committed revert removes the inputs admitted or promoted after its boundary.
DELETE FROM projection.session_input
 WHERE tenant = %(tenant)s
   AND session_id = %(session_id)s
   AND (admitted_seq > %(boundary_seq)s AND admitted_seq < %(revert_seq)s
        OR promoted_seq > %(boundary_seq)s AND promoted_seq < %(revert_seq)s);
