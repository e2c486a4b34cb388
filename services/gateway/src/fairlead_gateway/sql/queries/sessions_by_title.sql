-- A page of the sessions with a text in their title, found by the index of titles. It holds pieces of
-- up to three characters, so the title itself is compared too.
SELECT session_id, parent_id, project_id, session.title, directory, workspace_id, subpath, agent, model,
       cost, tokens, session.created_at, updated_at, archived_at, revert,
       models, children, file_changes, metadata, pool, stored,
       owner, broken, waiting, asks, pending, work_requested, interrupted, rested, wake_at,
       execution #>> '{{rest,detail}}' AS rest_detail, budget_cost, budget_tokens, seq
  FROM read.session_title AS entry
  JOIN read.session AS session USING (tenant, session_id)
 WHERE tenant = %(tenant)s
   AND entry.pieces @> read.title_pieces(%(tenant)s, %(search)s, least(3, length(lower(%(search)s))))
   AND strpos(left(lower(entry.title), 256), lower(%(search)s)) > 0
   AND (entry.created_at, session_id) {after} (%(after_time)s, %(after_id)s) {filters}
 ORDER BY entry.created_at {order}, session_id {order}
 LIMIT %(limit)s;
