-- Sessions after an anchor, oldest first. A NULL filter matches every session.
SELECT session_id, parent_id, project_id, title, directory, workspace_id, subpath, agent, model,
       cost, tokens, created_at, updated_at, archived_at, revert
  FROM read.session
 WHERE tenant = %(tenant)s
   AND (created_at, session_id) > (%(after_time)s, %(after_id)s)
   AND (%(workspace)s::text IS NULL OR workspace_id = %(workspace)s)
   AND (%(directory)s::text IS NULL OR directory = %(directory)s)
   AND (%(project)s::text IS NULL OR project_id = %(project)s)
   AND (%(search)s::text IS NULL OR strpos(lower(title), lower(%(search)s)) > 0)
 ORDER BY created_at ASC, session_id ASC
 LIMIT %(limit)s;
