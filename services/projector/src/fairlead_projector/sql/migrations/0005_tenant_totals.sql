-- What the sessions of a tenant have and use, as running totals. Each shard adds to a row of its own,
-- so that shards never wait for each other. A purge takes back what the session had, but neither its
-- cost nor its tokens.
CREATE TABLE projection.tenant_total (
    tenant    text    NOT NULL,
    shard     integer NOT NULL,
    sessions  bigint  NOT NULL DEFAULT 0,
    log_bytes bigint  NOT NULL DEFAULT 0,
    pending   bigint  NOT NULL DEFAULT 0,
    turns     bigint  NOT NULL DEFAULT 0,
    calls     bigint  NOT NULL DEFAULT 0,
    cost      numeric NOT NULL DEFAULT 0,
    tokens    numeric NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, shard)
);

ALTER TABLE projection.session ADD COLUMN log_bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE projection.session ADD COLUMN started_calls jsonb NOT NULL DEFAULT '[]';

-- Nobody counted the bytes of earlier commits. The bytes of their events are a little less.
UPDATE projection.session AS session
   SET log_bytes = event.bytes
  FROM (SELECT tenant, session_id, sum(octet_length(data::text)) AS bytes
          FROM projection.session_event
         GROUP BY tenant, session_id) AS event
 WHERE event.tenant = session.tenant
   AND event.session_id = session.session_id;

-- Totals of earlier rows count for no shard. Their running calls are unknown, and end soon.
INSERT INTO projection.tenant_total (
       tenant, shard, sessions, log_bytes, pending, turns, cost, tokens)
SELECT tenant, -1, count(*), sum(log_bytes), sum(pending), count(owner), sum(cost::text::numeric),
       sum((tokens ->> 'input')::bigint + (tokens ->> 'output')::bigint
         + (tokens ->> 'reasoning')::bigint + (tokens -> 'cache' ->> 'read')::bigint
         + (tokens -> 'cache' ->> 'write')::bigint)
  FROM projection.session
 GROUP BY tenant;

DROP VIEW read.session;
CREATE VIEW read.session AS SELECT * FROM projection.session;
CREATE VIEW read.tenant_total AS
SELECT tenant, sum(sessions)::bigint AS sessions, sum(log_bytes)::bigint AS log_bytes,
       sum(pending)::bigint AS pending, sum(turns)::bigint AS turns, sum(calls)::bigint AS calls,
       sum(cost) AS cost, sum(tokens) AS tokens
  FROM projection.tenant_total
 GROUP BY tenant;
