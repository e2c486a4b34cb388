-- Some sessions by their ids, archived ones too.
SELECT session_id, parent_id, project_id, title, directory, workspace_id, subpath, agent, model,
       cost, tokens, created_at, updated_at, archived_at, revert,
       models, children, file_changes, metadata, pool, stored,
       owner, broken, waiting, asks, pending, work_requested, interrupted, rested, wake_at,
       execution #>> '{rest,detail}' AS rest_detail, budget_cost, budget_tokens, seq
  FROM read.session
 WHERE tenant = %(tenant)s AND session_id = ANY(%(session_ids)s)
 ORDER BY created_at DESC, session_id DESC;
