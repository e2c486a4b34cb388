-- Sessions that another release found broken.
SELECT tenant, session_id
  FROM projection.session
 WHERE broken IS NOT NULL
   AND broken_by IS DISTINCT FROM %(release)s;
