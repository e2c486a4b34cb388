-- Writes the session rows of a batch.
INSERT INTO projection.session (
       tenant, session_id, seq, position, parent_id, project_id, title, directory, workspace_id,
       subpath, agent, model, cost, tokens, created_at, updated_at, archived_at, revert, owner,
       pending, owed, work_requested, wake_at, interrupted, rested, budget_cost, budget_tokens, broken,
       asks, waiting, execution)
SELECT tenant, session_id, seq, position, parent_id, project_id, title, directory, workspace_id,
       subpath, agent, model, cost, tokens, created_at, updated_at, archived_at,
       revert, owner, pending, owed, work_requested, wake_at, interrupted, rested, budget_cost,
       budget_tokens, broken, asks, waiting, execution
  FROM jsonb_to_recordset(%(rows)s::jsonb) AS row (
       tenant text, session_id text, seq bigint, position bigint, parent_id text,
       project_id text, title text, directory text, workspace_id text, subpath text, agent text,
       model jsonb, cost double precision, tokens jsonb, created_at bigint, updated_at bigint,
       archived_at bigint, revert jsonb, owner text, pending integer, owed boolean,
       work_requested boolean, wake_at bigint, interrupted boolean, rested text,
       budget_cost double precision, budget_tokens bigint, broken text, asks integer,
       waiting boolean, execution jsonb)
    ON CONFLICT (tenant, session_id) DO UPDATE
   SET seq = excluded.seq,
       position = excluded.position,
       directory = excluded.directory,
       workspace_id = excluded.workspace_id,
       subpath = excluded.subpath,
       agent = excluded.agent,
       model = excluded.model,
       cost = excluded.cost,
       tokens = excluded.tokens,
       updated_at = excluded.updated_at,
       archived_at = excluded.archived_at,
       revert = excluded.revert,
       owner = excluded.owner,
       pending = excluded.pending,
       owed = excluded.owed,
       work_requested = excluded.work_requested,
       wake_at = excluded.wake_at,
       interrupted = excluded.interrupted,
       rested = excluded.rested,
       budget_cost = excluded.budget_cost,
       budget_tokens = excluded.budget_tokens,
       broken = excluded.broken,
       asks = excluded.asks,
       waiting = excluded.waiting,
       execution = excluded.execution;
