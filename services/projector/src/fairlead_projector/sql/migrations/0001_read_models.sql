-- The first read models. Tables belong to the projector alone; the views in schema `read` are
-- what other services may rely on. Everything here can be dropped and rebuilt from the log.
CREATE SCHEMA projection;
CREATE SCHEMA read;

CREATE TABLE projection.checkpoint (
    shard    integer PRIMARY KEY,
    position bigint  NOT NULL DEFAULT 0 CHECK (position >= 0)
);

CREATE TABLE projection.session (
    tenant      text   NOT NULL,
    session_id  text   NOT NULL,
    seq         bigint NOT NULL CHECK (seq > 0),
    position    bigint NOT NULL,
    parent_id   text,
    project_id  text   NOT NULL,
    title       text   NOT NULL,
    directory   text   NOT NULL,
    workspace_id text,
    subpath     text,
    agent       text,
    model       jsonb,
    cost        double precision NOT NULL DEFAULT 0,
    tokens      jsonb  NOT NULL,
    created_at  bigint NOT NULL,
    updated_at  bigint NOT NULL,
    archived_at bigint,
    revert      jsonb,
    owner       text,
    pending     integer NOT NULL DEFAULT 0 CHECK (pending >= 0),
    owed        boolean NOT NULL DEFAULT false,
    stirring    boolean NOT NULL DEFAULT false,
    wake_at     bigint,
    broken      text,
    PRIMARY KEY (tenant, session_id)
);
CREATE INDEX session_by_created ON projection.session (tenant, created_at, session_id);
CREATE INDEX session_moving ON projection.session (updated_at) WHERE stirring OR owner IS NOT NULL;

CREATE TABLE projection.session_input (
    tenant       text   NOT NULL,
    session_id   text   NOT NULL,
    message_id   text   NOT NULL,
    admitted_seq bigint NOT NULL,
    promoted_seq bigint CHECK (promoted_seq > admitted_seq),
    cancelled    boolean NOT NULL DEFAULT false,
    delivery     text   NOT NULL CHECK (delivery IN ('steer', 'queue')),
    prompt       jsonb  NOT NULL,
    created_at   bigint NOT NULL,
    PRIMARY KEY (tenant, session_id, message_id),
    UNIQUE (tenant, session_id, admitted_seq)
);

CREATE TABLE projection.session_message (
    tenant     text   NOT NULL,
    session_id text   NOT NULL,
    message_id text   NOT NULL,
    seq        bigint NOT NULL,
    type       text   NOT NULL,
    message    jsonb  NOT NULL,
    PRIMARY KEY (tenant, session_id, message_id),
    UNIQUE (tenant, session_id, seq)
);

CREATE TABLE projection.session_event (
    tenant     text   NOT NULL,
    session_id text   NOT NULL,
    seq        bigint NOT NULL,
    event_id   text   NOT NULL,
    type       text   NOT NULL,
    version    integer NOT NULL,
    time       bigint NOT NULL,
    data       jsonb  NOT NULL,
    PRIMARY KEY (tenant, session_id, seq)
);

CREATE VIEW read.session AS SELECT * FROM projection.session;
CREATE VIEW read.session_input AS SELECT * FROM projection.session_input;
CREATE VIEW read.session_message AS SELECT * FROM projection.session_message;
CREATE VIEW read.session_event AS SELECT * FROM projection.session_event;
CREATE VIEW read.checkpoint AS SELECT * FROM projection.checkpoint;
