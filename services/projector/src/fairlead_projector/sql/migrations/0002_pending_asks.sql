-- What waits for people, so that it can be listed across sessions, and so that a session whose every
-- open call waits for a person is not taken for one that stands still.
CREATE TABLE projection.session_ask (
    tenant     text   NOT NULL,
    session_id text   NOT NULL,
    request_id text   NOT NULL,
    kind       text   NOT NULL CHECK (kind IN ('permission', 'question')),
    seq        bigint NOT NULL CHECK (seq > 0),
    message_id text,
    call_id    text,
    request    jsonb  NOT NULL,
    asked_at   bigint NOT NULL,
    PRIMARY KEY (tenant, session_id, request_id)
);
CREATE INDEX session_ask_by_time ON projection.session_ask (tenant, asked_at, request_id);
CREATE INDEX session_by_parent ON projection.session (tenant, parent_id) WHERE parent_id IS NOT NULL;

ALTER TABLE projection.session ADD COLUMN asks integer NOT NULL DEFAULT 0 CHECK (asks >= 0);
ALTER TABLE projection.session ADD COLUMN waiting boolean NOT NULL DEFAULT false;

CREATE OR REPLACE VIEW read.session AS SELECT * FROM projection.session;
CREATE VIEW read.session_ask AS SELECT * FROM projection.session_ask;
