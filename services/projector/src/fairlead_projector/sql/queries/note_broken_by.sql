-- Notes that this release cannot project a broken session either.
UPDATE projection.session
   SET broken_by = %(release)s
 WHERE tenant = %(tenant)s
   AND session_id = %(session_id)s;
