-- The sessions with a text in their title among the next ones after a key. For a text that many titles
-- contain, this fills a page without the index of titles.
SELECT session_id, parent_id, project_id, title, directory, workspace_id, subpath, agent, model,
       cost, tokens, created_at, updated_at, archived_at, revert,
       models, children, file_changes, metadata, pool, stored,
       owner, broken, waiting, asks, pending, work_requested, interrupted, rested, wake_at,
       execution #>> '{{rest,detail}}' AS rest_detail, budget_cost, budget_tokens, seq
  FROM (SELECT *
          FROM read.session
         WHERE tenant = %(tenant)s
           AND (created_at, session_id) {after} (%(after_time)s, %(after_id)s) {filters}
         ORDER BY created_at {order}, session_id {order}
         LIMIT %(near)s) AS session
 WHERE strpos(left(lower(title), 256), lower(%(search)s)) > 0
 ORDER BY created_at {order}, session_id {order}
 LIMIT %(limit)s;
