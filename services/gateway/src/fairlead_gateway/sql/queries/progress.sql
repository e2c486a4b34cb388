-- How far one session is projected.
SELECT seq, broken
  FROM read.session
 WHERE tenant = %(tenant)s AND session_id = %(session_id)s;
