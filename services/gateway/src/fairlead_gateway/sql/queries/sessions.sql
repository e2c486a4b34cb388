-- A page of sessions after a key, in the order of an index. The gateway fills in the conditions of the
-- filters that a caller set, so that the index of each filter can be used.
SELECT session_id, parent_id, project_id, title, directory, workspace_id, subpath, agent, model,
       cost, tokens, created_at, updated_at, archived_at, revert,
       models, children, file_changes, metadata, pool, stored,
       owner, broken, waiting, asks, pending, work_requested, interrupted, rested, wake_at,
       execution #>> '{{rest,detail}}' AS rest_detail, budget_cost, budget_tokens, seq
  FROM read.session
 WHERE tenant = %(tenant)s
   AND (created_at, session_id) {after} (%(after_time)s, %(after_id)s) {filters}
 ORDER BY created_at {order}, session_id {order}
 LIMIT %(limit)s;
