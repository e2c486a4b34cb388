-- What the sessions that a principal created have, as running totals. Each shard adds to a row of its
-- own. A purge takes back all of it, and the last purge removes the row.
CREATE TABLE projection.principal_total (
    tenant    text    NOT NULL,
    principal text    NOT NULL,
    shard     integer NOT NULL,
    sessions  bigint  NOT NULL DEFAULT 0,
    log_bytes bigint  NOT NULL DEFAULT 0,
    pending   bigint  NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, principal, shard)
);

-- The rows do not say who created earlier sessions. They count for nobody until a rebuild.
ALTER TABLE projection.session ADD COLUMN created_by text;

DROP VIEW read.session;
CREATE VIEW read.session AS SELECT * FROM projection.session;
CREATE VIEW read.principal_total AS
SELECT tenant, principal, sum(sessions)::bigint AS sessions, sum(log_bytes)::bigint AS log_bytes,
       sum(pending)::bigint AS pending
  FROM projection.principal_total
 GROUP BY tenant, principal;
