-- One session for readers.
SELECT session_id, parent_id, project_id, title, directory, workspace_id, subpath, agent, model,
       cost, tokens, created_at, updated_at, archived_at, revert,
       models, children, file_changes, metadata, pool, stored
  FROM read.session
 WHERE tenant = %(tenant)s AND session_id = %(session_id)s;
