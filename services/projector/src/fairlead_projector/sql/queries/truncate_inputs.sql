-- A committed revert removes the inputs promoted after its boundary, and those that it withdrew.
DELETE FROM projection.session_input
 WHERE tenant = %(tenant)s
   AND session_id = %(session_id)s
   AND (admitted_seq > %(boundary_seq)s AND admitted_seq < %(revert_seq)s
        AND (%(withdrawn)s::text[] IS NULL OR message_id = ANY (%(withdrawn)s::text[]))
        OR promoted_seq > %(boundary_seq)s AND promoted_seq < %(revert_seq)s);
