-- The sweep sees an interrupt that nobody honours, and sessions that rest over a budget.
ALTER TABLE projection.session ADD COLUMN interrupted boolean NOT NULL DEFAULT false;
ALTER TABLE projection.session ADD COLUMN rested text;
ALTER TABLE projection.session ADD COLUMN budget_cost double precision;
ALTER TABLE projection.session ADD COLUMN budget_tokens bigint;

DROP INDEX projection.session_moving;
CREATE INDEX session_moving ON projection.session (updated_at)
 WHERE stirring OR interrupted OR owner IS NOT NULL;
CREATE INDEX session_over_budget ON projection.session (tenant) WHERE rested = 'over-budget';

CREATE OR REPLACE VIEW read.session AS SELECT * FROM projection.session;
